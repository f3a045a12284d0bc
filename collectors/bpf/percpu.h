/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where the per-CPU data of each processor is: what has to be added to a
 * per-CPU pointer. Learned from a per-CPU map, since the kernel's own table is
 * a symbol that not every kernel lets us have: the address of its element on a
 * processor, less the pointer of all its elements.
 *
 * learn_percpu() has to run once before percpu_offset() is asked.
 */
#ifndef SLABCTL_PERCPU_H
#define SLABCTL_PERCPU_H

/* Numbers of possible processors, from 0. */
const volatile u32 possible_cpus = 1;

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1); /* possible_cpus, set at load */
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} percpu_offsets SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} percpu_probe SEC(".maps");

/* 0: not known. */
static always_inline u64 percpu_offset(u32 cpu)
{
	u64 *offset = bpf_map_lookup_elem(&percpu_offsets, &cpu);
	return offset ? *offset : 0;
}

static long learn_percpu_of(u64 cpu, u64 *base)
{
	u32 zero = 0, key = cpu;
	void *there = bpf_map_lookup_percpu_elem(&percpu_probe, &zero, key);
	u64 *offset = bpf_map_lookup_elem(&percpu_offsets, &key), address = 0;

	if (!there || !offset)
		return 1;
	if (!ADDRESS(&address, there))
		*offset = address - *base;
	return 0;
}

static noinline int learn_percpu(void)
{
	u64 map = 0, base = 0;

	if (ADDRESS(&map, &percpu_probe))
		return 1;
	/* The loader does not find an element of an empty array in a union, which
	 * this is before 6.2; it finds the array. */
	struct bpf_array *array = 0;
	if (bpf_probe_read_kernel(&base, sizeof(base), (void *)(map + OFFSET(array->pptrs))))
		return 1;
	bpf_loop(possible_cpus, learn_percpu_of, &base, 0);
	return 0;
}

#endif
