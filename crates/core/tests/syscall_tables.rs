//! The tables of system calls against the kernel headers of the machine that the tests run on, where there are some.

use twinbed_core::syscall::Architecture;

/// `#define __NR_read 0`
fn defined(text: &str) -> Vec<(u64, &str)> {
    text.lines()
        .filter_map(|line| line.strip_prefix("#define __NR_")?.split_once([' ', '\t']))
        .filter_map(|(name, number)| Some((number.trim().parse().ok()?, name)))
        .collect()
}

#[test]
fn numbers_are_those_of_the_kernels_headers() {
    let Ok(text) = std::fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/unistd_64.h") else { return };
    let calls = defined(&text);
    assert!(calls.len() > 300);
    for (number, name) in calls {
        assert_eq!(Architecture::X86_64.call(number), Some(name));
    }
}

#[test]
fn numbers_of_32_bits_are_those_of_the_kernels_headers() {
    // mmap2, close and access, from the kernel's arch/x86/entry/syscalls/syscall_32.tbl.
    assert_eq!(
        [192, 6, 33].map(|number| Architecture::I386.call(number)),
        [Some("mmap2"), Some("close"), Some("access")]
    );
    assert_eq!([Architecture::of("i386"), Architecture::of("i686")], [Some(Architecture::I386); 2]);
    let Ok(text) = std::fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/unistd_32.h") else { return };
    let calls = defined(&text);
    assert!(calls.len() > 300);
    for (number, name) in calls {
        assert_eq!(Architecture::I386.call(number), Some(name));
    }
}

#[test]
fn generic_numbers_are_those_of_the_generic_header() {
    let Ok(text) = std::fs::read_to_string("/usr/include/asm-generic/unistd.h") else { return };
    // What aarch64 has no use of, or has under the name that 64-bit machines give it.
    let others = ["renameat", "getrlimit", "setrlimit", "syscalls", "arch_specific_syscall", "sync_file_range2"];
    let calls: Vec<_> = defined(&text).into_iter().filter(|(_, name)| !others.contains(name)).collect();
    assert!(calls.len() > 250);
    for (number, name) in calls {
        let name_here = Architecture::Aarch64.call(number);
        // Those of 32-bit machines alone, such as clock_gettime64, begin at 403.
        assert!(
            name_here == Some(name) || name_here.is_none() && (400..424).contains(&number),
            "{number} {name} {name_here:?}"
        );
    }
}

#[test]
fn tables_are_whole() {
    for (architecture, last) in Architecture::ALL.into_iter().zip([469, 469, 469]) {
        let calls: Vec<_> = architecture.calls().collect();
        assert!(calls.iter().any(|(number, _)| *number >= last), "{architecture:?}");
        let mut names: Vec<_> = calls.iter().map(|(_, name)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), calls.len());
    }
    assert_eq!(Architecture::X86_64.call(400), None);
    assert_eq!(Architecture::X86_64.call(u64::MAX), None);
}
