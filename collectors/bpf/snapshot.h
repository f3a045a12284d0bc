/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the snapshot's programs write: records of 64-bit words. The first word
 * is the record's kind and, from bit 32 on, how many words it has. The parts
 * of a cache, by node and by processor, come before the cache.
 *
 * Where a record has a word KNOWN, bit n of it says that word n was read; a
 * word that was not is 0 and means nothing. record.rs has the same numbers, and
 * a test that reads this file.
 */
#ifndef SLABCTL_SNAPSHOT_H
#define SLABCTL_SNAPSHOT_H

enum record_kind { RECORD_CACHE = 1, RECORD_NODE = 2, RECORD_CPU = 3 };

enum cache_word {
	CACHE_HEAD,
	CACHE_KNOWN,
	CACHE_ADDRESS,
	CACHE_MOVED,		/* bits of `moved` */
	CACHE_SLAB_SIZE,
	CACHE_OBJECT_SIZE,
	CACHE_ALIGN,
	CACHE_USERSIZE,
	CACHE_ORDER_OBJECTS,	/* order << 16 | objects in a slab */
	CACHE_MIN_PARTIAL,
	CACHE_CPU_PARTIAL,
	CACHE_SHEAF_CAPACITY,
	CACHE_DEFRAG_RATIO,	/* ten times what sysfs shows */
	CACHE_PARTIAL,
	CACHE_SLABS,
	CACHE_TOTAL_OBJECTS,
	CACHE_WALKED,		/* partial slabs looked at, their objects and those in use */
	CACHE_WALKED_OBJECTS,
	CACHE_WALKED_INUSE,
	CACHE_CPU_SLABS,	/* slabs in the hand of a processor, and free objects there */
	CACHE_CPU_FREE,
	CACHE_CPU_PARTIAL_SLABS,
	CACHE_CPU_PARTIAL_FREE,
	CACHE_SHEAF_OBJECTS,	/* in main and spare sheaves */
	CACHE_RCU_OBJECTS,	/* in the sheaves that wait for a grace period */
	CACHE_BARN_FULL,
	CACHE_BARN_EMPTY,
	CACHE_BARN_OBJECTS,
	CACHE_SAMPLE_SLAB,	/* address of a partial slab, and of a free object in it */
	CACHE_SAMPLE_OBJECT,
	CACHE_OCCUPANCY,	/* 12 words: partial slabs looked at, by share of objects in use */
	CACHE_CPU_OCCUPANCY = CACHE_OCCUPANCY + 12, /* the same of the slabs of processors */
	CACHE_NAME = CACHE_CPU_OCCUPANCY + 12, /* 8 words of text, ends with a zero */
	CACHE_WORDS = CACHE_NAME + 8,
};

enum node_word {
	NODE_HEAD,
	NODE_KNOWN,
	NODE_NUMBER,
	NODE_PARTIAL,
	NODE_SLABS,
	NODE_TOTAL_OBJECTS,
	NODE_WALKED,
	NODE_WALKED_OBJECTS,
	NODE_WALKED_INUSE,
	NODE_BARN_FULL,
	NODE_BARN_EMPTY,
	NODE_WORDS,
};

enum cpu_word {
	CPU_HEAD,
	CPU_KNOWN,
	CPU_NUMBER,
	CPU_SLAB,		/* 1 with a slab in hand */
	CPU_FREE,
	CPU_PARTIAL_SLABS,
	CPU_PARTIAL_FREE,
	CPU_SHEAF_MAIN,
	CPU_SHEAF_SPARE,
	CPU_SHEAF_RCU,
	CPU_WORDS,
};

/* Why figures of a cache are not of one moment. */
enum moved {
	MOVED_PARTIAL = 1,	/* a partial list changed while it was walked */
	MOVED_CUT = 2,		/* a partial list is longer than the limit */
	MOVED_CPU = 4,		/* a processor's list changed while it was walked */
	MOVED_BARN = 8,		/* a barn did */
	MOVED_UNREAD = 16,	/* a part could not be read: its words are not known */
	MOVED_BETWEEN = 32,	/* slabs or sheaves went from one list to another, or came or went */
};

/* Words of the map `settings`. */
enum setting {
	SETTING_WALK,		/* partial slabs of a node that are looked at, at most */
	SETTING_PARTS,		/* bits: PARTS_NODES, PARTS_CPUS */
	SETTING_BUDGET,		/* slabs and free objects that a run looks at, about */
	SETTING_LEFT,		/* what of that is left; the reader sets it for `list` */
	/* Written by the programs: */
	SETTING_LOST,		/* records that found no room */
	SETTING_UNSEEN,		/* caches that could not be read */
	SETTING_ENDED,		/* the list of caches led nowhere before its end */
	SETTINGS,
};
enum { PARTS_NODES = 1, PARTS_CPUS = 2 };

#endif
