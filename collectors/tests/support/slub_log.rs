//! Writes SLUB reports of every shape for a layout and a fault that are known.
//!
//! Written from the format strings of the kernel and not from the parser, so
//! that the two can disagree.

#![allow(clippy::cast_possible_wrap, reason = "slots are small")]

use std::fmt::Write as _;

use collectors::analysis::explain::Class;
use collectors::analysis::explain::finding::Part;
use collectors::parse::kernel_log::report::Shape;

/// Bytes of the red zone on either side.
const ZONE: usize = 8;
/// Bytes behind the right red zone that are not shown: the free pointer and two tracks.
const META: usize = 40;
/// Bytes of padding that are shown.
const PADDING: usize = 8;

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// So many bytes behind the end.
    Overflow { len: usize },
    /// So many bytes before the start.
    Underflow { len: usize },
    /// Into a free object.
    UseAfterFree { at: usize, len: usize },
    /// One bit of a free object.
    Flip { at: usize, bit: u32 },
    /// A second free.
    DoubleFree,
    /// The link of the free list.
    FreeChain,
    /// Objects at destruction.
    Remaining { count: usize },
}

/// A report to be.
#[derive(Debug, Clone)]
pub struct Scene {
    pub cache: String,
    pub shape: Shape,
    pub fault: Fault,
    /// Bytes of the object.
    pub size: usize,
    /// Which object of the slab.
    pub slot: usize,
    /// 64-bit addresses.
    pub wide: bool,
    /// Addresses are hashed.
    pub hashed: bool,
    pub seed: u64,
}

impl Fault {
    /// First wrong byte from the object's start, and the bytes.
    pub fn damage(self, scene: &Scene) -> Option<(Part, i64, Vec<u8>)> {
        let size = scene.size;
        match self {
            Self::Overflow { len } => Some((Part::RightRedzone, size as i64, junk(scene, len))),
            Self::Underflow { len } => Some((Part::LeftRedzone, -(len as i64), junk(scene, len))),
            Self::UseAfterFree { at, len } => {
                // The last byte of an object has a check of its own.
                let at = at % (size - 1);
                let len = len.min(size - 1 - at);
                Some((Part::Poison, at as i64, junk(scene, len)))
            }
            Self::Flip { at, bit } => {
                let at = at % (size - 1);
                Some((Part::Poison, at as i64, vec![0x6b ^ (1 << bit)]))
            }
            Self::DoubleFree | Self::FreeChain | Self::Remaining { .. } => None,
        }
    }

    pub fn class(self, scene: &Scene) -> Class {
        match self {
            Self::Overflow { .. } => Class::Overflow,
            Self::Underflow { .. } => Class::Underflow,
            Self::UseAfterFree { .. } | Self::Flip { .. } => {
                let (_, _, bytes) = self.damage(scene).unwrap();
                // One more or one less is a counter and not a bit.
                let flip = bytes.len() == 1
                    && (bytes[0] ^ 0x6b).is_power_of_two()
                    && bytes[0] != 0x6a
                    && bytes[0] != 0x6c;
                if flip {
                    Class::BitFlip
                } else {
                    Class::UseAfterFree
                }
            }
            Self::DoubleFree => Class::DoubleFree,
            Self::FreeChain => Class::Freelist,
            Self::Remaining { .. } => Class::Leak,
        }
    }

    fn is_free(self) -> bool {
        !matches!(
            self,
            Self::Overflow { .. } | Self::Underflow { .. } | Self::Remaining { .. }
        )
    }

    fn what(self) -> &'static str {
        match self {
            Self::Overflow { .. } => "Right Redzone",
            Self::Underflow { .. } => "Left Redzone",
            _ => "Poison",
        }
    }
}

/// Bytes that are none of the allocator's marks; the first and last differ
/// from what should be there, whatever that is.
fn junk(scene: &Scene, len: usize) -> Vec<u8> {
    const MARKS: [u8; 6] = [0xcc, 0xbb, 0x6b, 0xa5, 0x5a, 0x00];
    let mut state = scene.seed | 1;
    (0..len)
        .map(|_| {
            loop {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let byte = (state >> 56) as u8;
                if !MARKS.contains(&byte) {
                    return byte;
                }
            }
        })
        .collect()
}

impl Scene {
    fn stride(&self) -> usize {
        ZONE + self.size + ZONE + META + PADDING
    }

    /// Offset of the object in its slab.
    pub fn object_at(&self) -> usize {
        self.slot * self.stride() + ZONE
    }

    /// An address as this kernel prints it.
    fn address(&self, at: usize) -> String {
        let real = if self.wide {
            0xffff_8880_1234_0000_u64
        } else {
            0xc123_0000
        } + at as u64;
        let shown = if self.hashed {
            (real ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
        } else {
            real
        };
        if self.wide {
            format!("{shown:016x}")
        } else {
            format!("{:08x}", shown & 0xffff_ffff)
        }
    }

    fn info(&self) -> &'static str {
        match self.shape {
            Shape::NoTaint | Shape::Info => "INFO: ",
            Shape::Plain | Shape::Bracket => "",
        }
    }

    /// All of the report, as the kernel prints it.
    pub fn report(&self) -> String {
        let mut out = String::new();
        let damage = self.fault.damage(self);
        let line = damage
            .as_ref()
            .map(|(_, from, bytes)| self.overwritten(*from, bytes));
        let bracket = self.shape == Shape::Bracket;
        if let Some(line) = line.as_ref().filter(|_| bracket) {
            writeln!(out, "[{} overwritten] {line}", self.fault.what()).unwrap();
        }
        let taint = match self.shape {
            Shape::NoTaint => "",
            _ => " (Tainted: G    B      OE     )",
        };
        writeln!(out, "{:=<77}", "").unwrap();
        writeln!(out, "BUG {}{taint}: {}", self.cache, self.reason()).unwrap();
        writeln!(out, "{:-<77}\n", "").unwrap();
        if let Some(line) = line.as_ref().filter(|_| !bracket) {
            writeln!(out, "{}{line}", self.info()).unwrap();
        }
        match self.fault {
            Fault::Remaining { count } if bracket => {
                self.remaining(&mut out, count);
                self.slab(&mut out);
                self.trace(&mut out);
            }
            Fault::Remaining { count } => {
                self.slab(&mut out);
                self.trace(&mut out);
                self.remaining(&mut out, count);
            }
            _ => {
                self.tracks(&mut out);
                self.slab(&mut out);
                self.object(&mut out, damage.as_ref());
                self.trace(&mut out);
            }
        }
        if let Some((_, from, bytes)) = &damage {
            let (first, last) = self.ends(*from, bytes.len());
            let what = if self.info().is_empty() {
                format!("{} ", self.fault.what())
            } else {
                String::new()
            };
            writeln!(
                out,
                "FIX {}: Restoring {what}0x{first}-0x{last}=0xcc",
                self.cache
            )
            .unwrap();
        }
        out
    }

    fn reason(&self) -> String {
        match self.fault {
            Fault::DoubleFree => "Object already free".to_owned(),
            Fault::FreeChain => "Freechain corrupt".to_owned(),
            Fault::Remaining { .. } if self.shape == Shape::Bracket => {
                "Objects remaining on __kmem_cache_shutdown()".to_owned()
            }
            Fault::Remaining { .. } => {
                format!(
                    "Objects remaining in {} on __kmem_cache_shutdown()",
                    self.cache
                )
            }
            _ if self.shape == Shape::Bracket => "Object corrupt".to_owned(),
            // Which side was not said before 5.10.
            Fault::Overflow { .. } | Fault::Underflow { .. } if self.shape == Shape::NoTaint => {
                "Redzone overwritten".to_owned()
            }
            fault => format!("{} overwritten", fault.what()),
        }
    }

    fn ends(&self, from: i64, len: usize) -> (String, String) {
        let first = usize::try_from(self.object_at() as i64 + from).unwrap();
        (self.address(first), self.address(first + len - 1))
    }

    fn overwritten(&self, from: i64, bytes: &[u8]) -> String {
        let (first, last) = self.ends(from, bytes.len());
        // The offset came with 5.9.
        let offset = match self.shape {
            Shape::NoTaint => String::new(),
            _ => format!(" @offset={}", self.object_at() as i64 + from),
        };
        let expected = if self.fault.is_free() { 0x6b } else { 0xcc };
        format!(
            "0x{first}-0x{last}{offset}. First byte {:#x} instead of {expected:#x}",
            bytes[0]
        )
    }

    fn tracks(&self, out: &mut String) {
        let indent = if self.info().is_empty() { " " } else { "\t" };
        writeln!(
            out,
            "{}Allocated in foo_open+0x33/0x40 [foo] age=9 cpu=3 pid=41",
            self.info()
        )
        .unwrap();
        for frame in [
            "__kmalloc+0x1a/0x2b",
            "foo_open+0x33/0x40 [foo]",
            "do_syscall_64+0x33/0x40",
        ] {
            writeln!(out, "{indent}{frame}").unwrap();
        }
        if self.fault.is_free() {
            writeln!(
                out,
                "{}Freed in foo_close+0x12/0x80 [foo] age=2 cpu=1 pid=42",
                self.info()
            )
            .unwrap();
            for frame in ["kfree+0x1a/0x2b", "foo_close+0x12/0x80 [foo]"] {
                writeln!(out, "{indent}{frame}").unwrap();
            }
        }
    }

    fn slab(&self, out: &mut String) {
        let pointer = self.address(0x55_0000);
        let flags = match self.shape {
            Shape::NoTaint | Shape::Info => "0x4000000000000080",
            _ => "0xfffffc0000200(workingset|node=0|zone=1|lastcpupid=0x1fffff)",
        };
        let info = self.info();
        writeln!(
            out,
            "{info}Slab 0x{pointer} objects=64 used=7 fp=0x{} flags={flags}",
            self.address(0)
        )
        .unwrap();
    }

    fn remaining(&self, out: &mut String, count: usize) {
        for n in 0..count {
            let at = n * self.stride() + ZONE;
            writeln!(
                out,
                "{}Object 0x{} @offset={at}",
                self.info(),
                self.address(at)
            )
            .unwrap();
            writeln!(
                out,
                "{}Allocated in foo_open+0x33/0x40 [foo] age=9 cpu=3 pid=41",
                self.info()
            )
            .unwrap();
            writeln!(out, " foo_open+0x33/0x40 [foo]").unwrap();
        }
    }

    fn object(&self, out: &mut String, damage: Option<&(Part, i64, Vec<u8>)>) {
        let (info, at) = (self.info(), self.object_at());
        writeln!(
            out,
            "{info}Object 0x{} @offset={at} fp=0x{}\n",
            self.address(at),
            self.address(at + 8)
        )
        .unwrap();
        let zone = if self.fault.is_free() { 0xbb } else { 0xcc };
        let mut slot = vec![zone; ZONE];
        slot.extend(vec![0x6b; self.size - 1]);
        slot.push(0xa5);
        slot.extend(vec![zone; ZONE]);
        if let Some((_, from, bytes)) = damage {
            let from = usize::try_from(ZONE as i64 + from).unwrap();
            slot[from..from + bytes.len()].copy_from_slice(bytes);
        }
        let (left, rest) = slot.split_at(ZONE);
        let (object, right) = rest.split_at(self.size);
        self.dump(out, "Redzone", at - ZONE, left);
        self.dump(out, "Object", at, object);
        self.dump(out, "Redzone", at + self.size, right);
        self.dump(
            out,
            "Padding",
            at + self.size + ZONE + META,
            &[0x5a; PADDING],
        );
    }

    fn dump(&self, out: &mut String, label: &str, at: usize, bytes: &[u8]) {
        for (n, row) in bytes.chunks(16).enumerate() {
            let address = self.address(at + 16 * n);
            // Up to 3.5 with `0x`, up to 5.10 with one blank.
            match self.shape {
                Shape::NoTaint => write!(out, "  {label} 0x{address}:  ").unwrap(),
                Shape::Info => write!(out, "{label} {address}: ").unwrap(),
                _ => write!(out, "{label:<8} {address}: ").unwrap(),
            }
            for byte in row {
                write!(out, "{byte:02x} ").unwrap();
            }
            write!(out, "{:1$} ", "", 3 * (16 - row.len())).unwrap();
            for byte in row {
                let shown = byte.is_ascii_graphic() || *byte == b' ';
                out.push(if shown { char::from(*byte) } else { '.' });
            }
            out.push('\n');
        }
    }

    fn trace(&self, out: &mut String) {
        if self.shape == Shape::Bracket {
            out.push_str("------------[ cut here ]------------\n");
            out.push_str("WARNING: CPU: 2 PID: 1234 at mm/slub.c:1257 object_err+0x1e7/0x1f4\n");
            out.push_str("Modules linked in: foo(OE)\n");
        }
        out.push_str(
            "CPU: 2 PID: 1234 Comm: a program Tainted: G    B      OE      6.1.0-57-amd64 #1\n",
        );
        out.push_str("Hardware name: QEMU Standard PC (i440FX + PIIX, 1996), BIOS 1.16.2\nCall Trace:\n <TASK>\n");
        for frame in [
            "dump_stack_lvl+0x44/0x5c",
            "? foo_guess+0x1/0x2",
            "check_object+0x1eb/0x290",
            "kfree+0x276/0x2b0",
            "foo_release+0x44/0x90 [foo]",
        ] {
            writeln!(out, " {frame}").unwrap();
        }
        out.push_str(" </TASK>\n");
    }
}

/// What programs make of a log on its way.
#[derive(Debug, Clone)]
pub struct Transport {
    pub quote: &'static str,
    pub prefix: &'static str,
    /// Lines are wrapped at this width, the rest without a prefix.
    pub wrap: Option<usize>,
    /// Lines of another caller stand between.
    pub interleave: bool,
    /// Blanks at the ends of lines.
    pub padding: bool,
}

/// About as many columns as a prefix takes.
pub fn prefix_len(prefix: &str) -> usize {
    match prefix {
        "syslog" => 45,
        "" => 0,
        _ => 27,
    }
}

impl Transport {
    pub fn carry(&self, text: &str) -> String {
        let mut out = String::new();
        for (n, line) in text.lines().enumerate() {
            let micros = 1000 + n * 7;
            let prefix = match self.prefix {
                "time" => format!("[ 1151.{micros:06}] "),
                "caller" => format!("[ 1151.{micros:06}][ T1234] "),
                "syslog" => format!("Feb 15 11:08:16 host kernel: [ 1151.{micros:06}] "),
                "kmsg" => format!("3,{n},1151{micros:06},-;"),
                "date" => "[Wed Feb 15 11:08:16 2023] ".to_owned(),
                _ => String::new(),
            };
            let line = if self.prefix == "kmsg" {
                line.replace('\t', "\\x09")
            } else {
                line.to_owned()
            };
            let whole = format!("{prefix}{line}");
            for part in wrapped(&whole, self.wrap.unwrap_or(usize::MAX)) {
                let blanks = if self.padding { "   " } else { "" };
                writeln!(out, "{}{part}{blanks}", self.quote).unwrap();
            }
            if self.interleave && n % 3 == 0 {
                writeln!(
                    out,
                    "{}[ 1151.{micros:06}][ T9] \tother_frame+0x1/0x2",
                    self.quote
                )
                .unwrap();
                writeln!(out, "{}[ 1151.{micros:06}][ T9] eth0: link up", self.quote).unwrap();
            }
        }
        out
    }
}

/// Breaks a line at blanks, as mail programs do. What stands in columns breaks
/// at the end of a run of blanks.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = line;
    while rest.len() > width {
        let Some(at) = rest[..width]
            .rfind(' ')
            .filter(|at| !rest[..*at].trim().is_empty())
        else {
            break;
        };
        parts.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start();
    }
    parts.push(rest.to_owned());
    parts
}

/// Two reports line by line, each with its caller.
pub fn zip(a: &str, b: &str) -> String {
    let mut out = String::new();
    let (mut a, mut b) = (a.lines(), b.lines());
    loop {
        let (x, y) = (a.next(), b.next());
        if x.is_none() && y.is_none() {
            return out;
        }
        for (caller, line) in [("T1234", x), ("   C0", y)] {
            if let Some(line) = line {
                writeln!(out, "[ 1151.000001][ {caller}] {line}").unwrap();
            }
        }
    }
}
