//! Whether BPF programs can run here, and in one line why not.
//!
//! Source of truth: kernel/bpf/syscall.c for the capabilities, security/lockdown
//! for what confidentiality refuses (`bpf_probe_read_kernel`). Nothing is loaded
//! to find out; what only a load can tell is a [`Refusal::Refused`] of the loader.

use std::fmt;
use std::fs;
use std::path::Path;

/// Why BPF programs cannot be used. `Display` is one line for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel is older than 6.1: its release.
    OldKernel(String),
    /// The kernel does not describe its types.
    NoBtf,
    /// The kernel lets nobody read its memory.
    Confidentiality,
    /// Capabilities that this process lacks.
    Capabilities(Vec<&'static str>),
    /// Programs are built for 64-bit little-endian machines.
    Architecture,
    /// This slabctl was built without the feature `bpf`.
    NotBuilt,
    /// The kernel refused something: what, and its own words.
    Refused {
        /// What was tried.
        what: String,
        /// The reason as far as it is known.
        why: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OldKernel(release) => write!(
                f,
                "kernel {release} is too old for the programs, which need 6.1 or later"
            ),
            Self::NoBtf => write!(
                f,
                "the kernel does not describe its types: no /{BTF} (CONFIG_DEBUG_INFO_BTF)"
            ),
            Self::Confidentiality => write!(
                f,
                "the kernel is locked down for confidentiality, so no program may read its memory (/{LOCKDOWN})"
            ),
            Self::Capabilities(missing) => write!(
                f,
                "needs {} (root has them; setcap {}+ep gives them to the program)",
                missing.join(" and "),
                missing.join(",").to_lowercase()
            ),
            Self::Architecture => {
                f.write_str("the programs are for 64-bit little-endian machines (tested on x86-64)")
            }
            Self::NotBuilt => f.write_str("this slabctl was built without the feature `bpf`"),
            Self::Refused { what, why } => write!(f, "{what}: {why}"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// Whether more rights would help.
    pub const fn is_permission(&self) -> bool {
        matches!(self, Self::Capabilities(_))
    }
}

const BTF: &str = "sys/kernel/btf/vmlinux";
const LOCKDOWN: &str = "sys/kernel/security/lockdown";
/// The kernel that has all helpers the programs use, and whose structures they know.
const OLDEST: (u32, u32) = (6, 1);
/// Bits of the capability masks in /proc/PID/status.
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// What decides, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Facts {
    /// `uname -r`.
    release: String,
    btf: bool,
    /// The text of the lockdown file, where there is one.
    lockdown: Option<String>,
    /// Effective capabilities; `None`: not known, so the load will tell.
    capabilities: Option<u64>,
    /// 64-bit and little-endian.
    architecture: bool,
    /// The feature `bpf`.
    built: bool,
}

/// Checks what can be known without loading anything, in a fixed order: the
/// first thing that is missing is named.
pub fn check() -> Result<(), Refusal> {
    Facts::read(Path::new("/")).judge()
}

/// Whether the programs were tested on machines of this kind.
pub const fn is_tested() -> bool {
    cfg!(target_arch = "x86_64")
}

impl Facts {
    fn read(root: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        Self {
            release: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            btf: root.join(BTF).exists(),
            lockdown: text(LOCKDOWN),
            capabilities: text("proc/self/status").and_then(|status| effective(&status)),
            architecture: cfg!(all(target_endian = "little", target_pointer_width = "64")),
            built: cfg!(feature = "bpf"),
        }
    }

    fn judge(&self) -> Result<(), Refusal> {
        // A release that cannot be read is tried.
        if version(&self.release).is_some_and(|found| found < OLDEST) {
            return Err(Refusal::OldKernel(self.release.clone()));
        }
        if !self.btf {
            return Err(Refusal::NoBtf);
        }
        let locked = |text: &String| text.contains("[confidentiality]");
        if self.lockdown.as_ref().is_some_and(locked) {
            return Err(Refusal::Confidentiality);
        }
        let missing = self.missing();
        if !missing.is_empty() {
            return Err(Refusal::Capabilities(missing));
        }
        if !self.architecture {
            return Err(Refusal::Architecture);
        }
        if !self.built {
            return Err(Refusal::NotBuilt);
        }
        Ok(())
    }

    fn missing(&self) -> Vec<&'static str> {
        let Some(mask) = self.capabilities else {
            return Vec::new();
        };
        let has = |bit: u32| mask >> bit & 1 == 1;
        if has(SYS_ADMIN) {
            return Vec::new();
        }
        [(BPF, "CAP_BPF"), (PERFMON, "CAP_PERFMON")]
            .into_iter()
            .filter(|(bit, _)| !has(*bit))
            .map(|(_, name)| name)
            .collect()
    }
}

/// Major and minor number of a kernel's release.
pub(super) fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Facts {
        Facts {
            release: "6.12.117-cloud-amd64".into(),
            btf: true,
            lockdown: Some("none [integrity] confidentiality\n".into()),
            capabilities: Some(1 << BPF | 1 << PERFMON),
            architecture: true,
            built: true,
        }
    }

    #[test]
    fn the_two_capabilities_are_enough_and_so_is_root() {
        assert_eq!(good().judge(), Ok(()));
        let root = Facts {
            capabilities: Some(1 << SYS_ADMIN),
            lockdown: None,
            ..good()
        };
        assert_eq!(root.judge(), Ok(()));
    }

    #[test]
    fn each_thing_that_is_missing_is_named_in_order() {
        // Everything is wrong; one thing after the other is put right.
        let mut facts = Facts {
            release: "5.15.0-91-generic".into(),
            btf: false,
            lockdown: Some("none integrity [confidentiality]\n".into()),
            capabilities: Some(1 << PERFMON),
            architecture: false,
            built: false,
        };
        let mut said = Vec::new();
        let mut refused = |facts: &Facts| {
            let refusal = facts.judge().unwrap_err();
            said.push(refusal.to_string());
            refusal
        };
        let old = Refusal::OldKernel("5.15.0-91-generic".into());
        assert_eq!(refused(&facts), old);
        facts.release = "6.1.0-44-amd64".into();
        assert_eq!(refused(&facts), Refusal::NoBtf);
        facts.btf = true;
        assert_eq!(refused(&facts), Refusal::Confidentiality);
        facts.lockdown = None;
        assert_eq!(refused(&facts), Refusal::Capabilities(vec!["CAP_BPF"]));
        facts.capabilities = None;
        assert_eq!(refused(&facts), Refusal::Architecture);
        facts.architecture = true;
        assert_eq!(refused(&facts), Refusal::NotBuilt);
        facts.built = true;
        assert_eq!(facts.judge(), Ok(()));
        let distinct: std::collections::BTreeSet<_> = said.iter().collect();
        assert_eq!(distinct.len(), said.len());
        assert!(said.iter().all(|line| !line.contains('\n')), "{said:?}");
    }

    #[test]
    fn versions_and_masks_are_read() {
        assert_eq!(version("6.18.44-fc-v857"), Some((6, 18)));
        assert_eq!(version("7.0-rc3"), Some((7, 0)));
        assert_eq!(version("next"), None);
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000000c000000000\n";
        assert_eq!(effective(status), Some(1 << BPF | 1 << PERFMON));
    }
}
