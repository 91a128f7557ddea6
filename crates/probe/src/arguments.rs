//! The command line of a subcommand: `--name value` and `--flag`, nothing else.

use crate::failure::{Failure, Outcome};

pub struct Arguments {
    left: Vec<String>,
}

impl Arguments {
    pub fn new(arguments: impl IntoIterator<Item = String>) -> Self {
        Arguments { left: arguments.into_iter().collect() }
    }

    /// The next word, where it is no option.
    pub fn word(&mut self) -> Option<String> {
        let is_word = self.left.first().is_some_and(|first| !first.starts_with("--"));
        is_word.then(|| self.left.remove(0))
    }

    pub fn flag(&mut self, name: &str) -> bool {
        match self.left.iter().position(|a| a == name) {
            Some(at) => {
                self.left.remove(at);
                true
            }
            None => false,
        }
    }

    pub fn value(&mut self, name: &str) -> Outcome<Option<String>> {
        let Some(at) = self.left.iter().position(|a| a == name) else {
            return Ok(None);
        };
        if at + 1 == self.left.len() {
            return Err(Failure::new(format!("{name} needs a value")));
        }
        self.left.remove(at);
        Ok(Some(self.left.remove(at)))
    }

    pub fn values(&mut self, name: &str) -> Outcome<Vec<String>> {
        let mut all = Vec::new();
        while let Some(value) = self.value(name)? {
            all.push(value);
        }
        Ok(all)
    }

    pub fn required(&mut self, name: &str) -> Outcome<String> {
        self.value(name)?.ok_or_else(|| Failure::new(format!("{name} is missing")))
    }

    /// Everything must have been taken by now.
    pub fn finish(self) -> Outcome<()> {
        match self.left.first() {
            None => Ok(()),
            Some(extra) => Err(Failure::new(format!("unknown or repeated argument {extra:?}"))),
        }
    }
}

/// Reads `text`, the value of option `name`, as a number.
pub fn number<T: std::str::FromStr>(name: &str, text: &str) -> Outcome<T> {
    text.parse().map_err(|_| Failure::new(format!("{name} takes a number, not {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &str) -> Arguments {
        Arguments::new(words.split_whitespace().map(String::from))
    }

    #[test]
    fn takes_values_lists_and_flags() {
        let mut a = arguments("--cgroup a --id x --kmsg --cgroup b");
        assert_eq!(a.values("--cgroup").unwrap(), ["a", "b"]);
        assert_eq!(a.required("--id").unwrap(), "x");
        assert!(a.flag("--kmsg"));
        assert!(!a.flag("--net"));
        a.finish().unwrap();
    }

    #[test]
    fn says_what_is_wrong() {
        let mut a = arguments("--id");
        assert_eq!(a.value("--id").unwrap_err().message, "--id needs a value");
        assert!(arguments("--oops").finish().is_err());
        assert!(number::<i32>("--fd", "x").is_err());
    }
}
