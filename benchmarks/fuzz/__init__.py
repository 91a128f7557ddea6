"""Every reader of what others wrote, fuzzed guided by coverage: those in Rust by libFuzzer, those in Python by atheris.

python -m benchmarks.fuzz --seconds 60                    each target for so long, two side by side
python -m benchmarks.fuzz --seconds 600 --only pcap hello
python -m benchmarks.fuzz --seconds 60 --keep             and keep what is new in the corpora, made small

It wants nightly Rust with cargo-fuzz (``cargo install cargo-fuzz``) and ``pip install atheris``. A corpus is a folder of this
package's ``corpus``; golden files are seeds besides. An input that a reader does not bear is named, and kept beside the corpus.
"""
