//! Who did it, told from a stack: the first function that is not the
//! allocator's own.
//!
//! Source of truth: the functions of mm/slub.c, mm/slab.c, mm/slab_common.c
//! and of the stack dumpers from 2.6.22 to 7.3. A function that is inlined has
//! no frame, and its caller is named.

use super::finding::Operation;
use crate::parse::kernel_log::report::{Frame, Stack};

/// Beginnings of names that free objects.
const FREE: &[&str] = &[
    "kfree",
    "kvfree",
    "kzfree",
    "kmem_cache_free",
    "__kmem_cache_free",
    "slab_free",
    "do_slab_free",
    "__slab_free",
    "free_debug_processing",
    "free_to_partial_list",
    "free_consistency_checks",
    "cache_free_debugcheck",
    "__cache_free",
    "___cache_free",
    "cache_from_obj",
    "warn_free_bad_obj",
    "verify_redzone_free",
    "build_detached_freelist",
];

/// Beginnings of names that allocate.
const ALLOC: &[&str] = &[
    "kmalloc",
    "__kmalloc",
    "__do_kmalloc",
    "kmem_cache_alloc",
    "__kmem_cache_alloc",
    "kmem_cache_zalloc",
    "krealloc",
    "kvmalloc",
    "__kvmalloc",
    "slab_alloc",
    "__slab_alloc",
    "___slab_alloc",
    "alloc_debug_processing",
    "alloc_consistency_checks",
    "alloc_single_from",
    "cache_alloc_debugcheck",
    "cache_alloc_refill",
    "cache_grow",
    "check_poison_obj",
    "get_partial",
    "allocate_slab",
    "new_slab",
    "slab_out_of_memory",
    "refill_",
];

const VALIDATE: &[&str] = &["validate_slab", "validate_store", "slab_attr_store"];

const DESTROY: &[&str] = &[
    "kmem_cache_destroy",
    "__kmem_cache_shutdown",
    "__kmem_cache_release",
    "kmem_cache_close",
    "shutdown_cache",
    "list_slab_objects",
];

/// Neither of these, and still not the user of an object.
const PLUMBING: &[&str] = &[
    "dump_stack",
    "__dump_stack",
    "show_stack",
    "show_trace",
    "dump_trace",
    "dump_backtrace",
    "unwind_backtrace",
    "save_stack",
    "set_track",
    "stack_trace",
    "print_trailer",
    "print_address",
    "print_report",
    "object_err",
    "slab_err",
    "__slab_err",
    "slab_bug",
    "slab_error",
    "slab_fix",
    "slab_pad_check",
    "check_object",
    "check_slab",
    "check_bytes",
    "check_memory",
    "check_region",
    "on_freelist",
    "free_partial",
    "free_slab",
    "discard_slab",
    "deactivate_slab",
    "flush_",
    "kasan_",
    "__kasan",
    "kfence_",
    "__kfence",
    "__asan",
    "__hwasan",
    "warn_slowpath",
    "__warn",
    "report_bug",
    "handle_bug",
    "exc_invalid_op",
    "asm_exc_invalid_op",
    "memcpy",
    "memset",
    "memmove",
    "strcpy",
    "strlen",
    "__rcu_free",
    "usercopy_abort",
    "__check_heap_object",
    "__check_object_size",
    "kmemleak_",
];

fn in_list(function: &str, list: &[&str]) -> bool {
    list.iter().any(|start| function.starts_with(start))
}

fn is_internal(function: &str) -> bool {
    [FREE, ALLOC, VALIDATE, DESTROY, PLUMBING]
        .iter()
        .any(|list| in_list(function, list))
}

/// The user of the object: the first sure frame that is not the allocator's.
pub(super) fn user(stack: &Stack) -> Option<&Frame> {
    let mut sure = stack.frames.iter().filter(|frame| !frame.guess);
    sure.find(|frame| !is_internal(frame.function()))
}

/// What was being done: the outermost of the allocator's functions that are
/// above the user decides, since a free may flush and a destroy may free.
pub(super) fn operation(stack: &Stack) -> Option<Operation> {
    let mut found = None;
    for frame in stack.frames.iter().filter(|frame| !frame.guess) {
        let function = frame.function();
        if in_list(function, DESTROY) {
            found = Some(Operation::Destroy);
        } else if in_list(function, VALIDATE) {
            found = Some(Operation::Validate);
        } else if in_list(function, FREE) {
            found = Some(Operation::Free);
        } else if in_list(function, ALLOC) {
            found = Some(Operation::Alloc);
        } else if !in_list(function, PLUMBING) {
            break;
        }
    }
    found
}

/// Whether two symbols are in the same function.
pub(super) fn same_function(a: &str, b: &str) -> bool {
    let name = |symbol: &str| {
        let frame = Frame {
            symbol: symbol.to_owned(),
            guess: false,
        };
        frame.function().to_owned()
    };
    name(a) == name(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(functions: &[&str]) -> Stack {
        let frame = |symbol: &&str| Frame {
            symbol: symbol.trim_start_matches("? ").to_owned(),
            guess: symbol.starts_with('?'),
        };
        Stack {
            frames: functions.iter().map(frame).collect(),
        }
    }

    #[test]
    fn the_user_comes_after_the_allocator() {
        let free = stack(&[
            "dump_stack+0x57/0x6a",
            "check_object+0x1eb/0x290",
            "? __x64_sys_swapoff+0x39a/0x540",
            "kfree+0x276/0x2b0",
            "__x64_sys_swapoff+0x39a/0x540",
            "kmem_cache_alloc+1",
        ]);
        assert_eq!(user(&free).unwrap().function(), "__x64_sys_swapoff");
        assert_eq!(operation(&free), Some(Operation::Free));
        let destroy = stack(&[
            "slab_err+1",
            "__kmem_cache_shutdown.cold+1",
            "kmem_cache_destroy+1",
            "exit_cifs+1",
        ]);
        assert_eq!(operation(&destroy), Some(Operation::Destroy));
        assert_eq!(user(&destroy).unwrap().function(), "exit_cifs");
        assert_eq!(operation(&Stack::default()), None);
    }
}
