/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The language of the programs: types, maps, helpers of the kernel, and reads
 * of kernel structures whose layout is found at load time (CO-RE).
 *
 * Source of truth: the numbers of helpers, map types and relocation kinds are
 * the kernel's ABI (include/uapi/linux/bpf.h) and clang's built-ins.
 */
#ifndef SLABCTL_BPF_H
#define SLABCTL_BPF_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define always_inline inline __attribute__((always_inline))
#define noinline __attribute__((noinline))

/* ---- maps: a struct of these members in section ".maps" */
#define MAP_NUMBER(name, value) int(*name)[value]
#define MAP_TYPE(name, type) typeof(type) *name

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY, BPF_NOEXIST, BPF_EXIST };

/* ---- helpers of the kernel, by number */
struct seq_file;
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const bpf_get_stackid)(void *ctx, void *map, u64 flags) = (void *)27;
static u64 (*const bpf_get_current_task)(void) = (void *)35;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*const bpf_seq_write)(struct seq_file *seq, const void *data, u32 size) = (void *)127;
static long (*const bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static long (*const bpf_loop)(u32 times, void *step, void *context, u64 flags) = (void *)181;
static long (*const bpf_get_func_arg)(void *ctx, u32 n, u64 *value) = (void *)183;
static void *(*const bpf_map_lookup_percpu_elem)(void *map, const void *key, u32 cpu) = (void *)195;

/* ---- structures of the running kernel
 * A field is written as for the compiler, `s->size`; where s points is never
 * read directly. A field that the kernel may lack is read only behind HAS: a
 * relocation that fails makes an instruction that the verifier refuses where
 * it can be reached. The compiler is free to move what is relocated above its
 * HAS; so a field, or a layout, that is not everywhere is read in a function of
 * its own that is not inlined: OPTIONAL makes one. */
#define HAS(field) __builtin_preserve_field_info(field, 2)
#define OFFSET(field) __builtin_preserve_field_info(field, 0)
#define SIZE(field) __builtin_preserve_field_info(field, 1)
/* The bits of a bit field in the unit that OFFSET and SIZE name. */
#define BITS(field, unit) \
	((unit) << __builtin_preserve_field_info(field, 4) >> __builtin_preserve_field_info(field, 5))

/* Reads an unsigned number or a pointer of any size into a u64, which is 0 when
 * the read fails. Gives 0 for success. */
#define READ(to, field) (*(to) = 0, bpf_probe_read_kernel(to, SIZE(field), &(field)))

/* A function of this name, that reads a field which not all kernels have.
 * Gives 0 for success; not to be called without HAS. */
#define OPTIONAL(name, type, field)                          \
	static noinline long name(struct type *s, u64 *to)   \
	{                                                    \
		return READ(to, s->field);                   \
	}

/* The address of a variable as a number, which the verifier would not let us have. */
#define ADDRESS(to, pointer) \
	({ const void *of_ = (pointer); bpf_probe_read_kernel(to, sizeof(u64), &of_); })

#endif
