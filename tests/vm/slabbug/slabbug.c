// SPDX-License-Identifier: GPL-2.0-only
/*
 * slabbug: a kernel module for slabctl's tests in virtual machines. It keeps a
 * known number of objects, and damages one on demand. Never load it on a
 * machine that matters.
 *
 * This file is under the GPL, version 2, unlike the rest of the project: it is
 * built against the kernel and is part of no program of the project.
 *
 * Write one command to /sys/kernel/debug/slabbug:
 *
 *   new NAME         free what is kept, go on with a new cache NAME
 *   alloc N [NODE]   keep N more objects
 *   free N           free the N objects that were kept last
 *
 *   and, each with an object of its own:
 *   overflow         two bytes behind a live object (0x12 0x34)
 *   underflow        the byte before a live object (0x56)
 *   uaf-first        the first byte of a freed object (0x78)
 *   uaf-mid          a byte in the middle of a freed object (0x9a)
 *   bit-flip         one bit in the middle of a freed object
 *   freeptr          the link to the next free object, inverted in one byte
 *   double-free      free it twice
 *   bad-free         free a pointer 8 bytes into it
 *   wrong-cache      free a kmalloc'ed object to this cache
 *   leak             nothing: it is left when the cache is destroyed
 *
 * A command with ! behind its name frees a live object that it damaged, so
 * that SLUB looks at it. Otherwise it stays, and only validation finds it.
 * Caches are destroyed when the module is removed.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#define KEPT_MAX 65536
#define CACHES_MAX 32
#define NAME_MAX_LEN 32

static unsigned int size = 64;
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "bytes of an object; a multiple of 8");

static bool debug = true;
module_param(debug, bool, 0444);
MODULE_PARM_DESC(debug, "create caches with all of SLUB's debugging");

static struct kmem_cache *caches[CACHES_MAX];
static char names[CACHES_MAX][NAME_MAX_LEN];
static unsigned int nr_caches;
static void **kept;
static unsigned int nr_kept;
static DEFINE_MUTEX(busy);
static struct dentry *file;

static struct kmem_cache *current_cache(void)
{
	return caches[nr_caches - 1];
}

/* Functions of their own, and no tail calls: their names are what tests look for. */
static noinline void *slabbug_alloc_one(int node)
{
	void *object = kmem_cache_alloc_node(current_cache(), GFP_KERNEL, node);

	barrier();
	return object;
}

static noinline void slabbug_free_one(void *object)
{
	kmem_cache_free(current_cache(), object);
	barrier();
}

static void free_kept(unsigned int n)
{
	for (; n && nr_kept; n--)
		slabbug_free_one(kept[--nr_kept]);
}

static int keep(unsigned int n, int node)
{
	for (; n && nr_kept < KEPT_MAX; n--) {
		void *object = slabbug_alloc_one(node);

		if (!object)
			return -ENOMEM;
		kept[nr_kept++] = object;
	}
	return n ? -ENOSPC : 0;
}

static int new_cache(const char *name)
{
	slab_flags_t flags = 0;
	struct kmem_cache *cache;

	if (nr_caches == CACHES_MAX)
		return -ENOSPC;
	if (debug)
		flags |= SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON | SLAB_STORE_USER;
#ifdef SLAB_NO_MERGE
	flags |= SLAB_NO_MERGE;
#endif
	/* Older kernels keep the pointer to the name. */
	strscpy(names[nr_caches], name, NAME_MAX_LEN);
	cache = kmem_cache_create(names[nr_caches], size, 0, flags, NULL);
	if (!cache)
		return -ENOMEM;
	caches[nr_caches++] = cache;
	return 0;
}

/* Damage to a live object, and whether it is freed afterwards. */

static void overflow(u8 *object)
{
	object[size] = 0x12;
	object[size + 1] = 0x34;
}

static void underflow(u8 *object)
{
	object[-1] = 0x56;
}

static void leak(u8 *object)
{
}

/* Damage to an object that is freed already. */

static void uaf_first(u8 *object)
{
	object[0] = 0x78;
}

static void uaf_mid(u8 *object)
{
	object[size / 2 + 5] = 0x9a;
}

static void bit_flip(u8 *object)
{
	object[size / 2 + 5] ^= 0x10;
}

/* With red zones the link is behind the object and its right red zone. */
static void freeptr(u8 *object)
{
	object[size + sizeof(void *)] ^= 0xff;
}

/* Frees that are wrong. */

static void double_free(u8 *object)
{
	slabbug_free_one(object);
	slabbug_free_one(object);
}

static void bad_free(u8 *object)
{
	slabbug_free_one(object + 8);
	slabbug_free_one(object);
}

static void wrong_cache(u8 *object)
{
	void *other = kmalloc(size, GFP_KERNEL);

	if (other)
		slabbug_free_one(other);
	slabbug_free_one(object);
}

enum when { LIVE, FREED, FREES };

static const struct fault {
	const char *name;
	enum when when;
	void (*damage)(u8 *object);
} faults[] = {
	{ "overflow", LIVE, overflow },
	{ "underflow", LIVE, underflow },
	{ "leak", LIVE, leak },
	{ "uaf-first", FREED, uaf_first },
	{ "uaf-mid", FREED, uaf_mid },
	{ "bit-flip", FREED, bit_flip },
	{ "freeptr", FREED, freeptr },
	{ "double-free", FREES, double_free },
	{ "bad-free", FREES, bad_free },
	{ "wrong-cache", FREES, wrong_cache },
};

static int plant(const struct fault *fault, bool then_free)
{
	u8 *object = slabbug_alloc_one(NUMA_NO_NODE);

	if (!object)
		return -ENOMEM;
	/* The compiler must not know where it comes from, or it warns or leaves the write out. */
	OPTIMIZER_HIDE_VAR(object);
	if (fault->when == FREED) {
		u8 *stale = object;

		OPTIMIZER_HIDE_VAR(stale);
		slabbug_free_one(object);
		object = stale;
	}
	fault->damage(object);
	if (fault->when == LIVE && then_free)
		slabbug_free_one(object);
	return 0;
}

static int obey(char *command)
{
	char name[NAME_MAX_LEN];
	unsigned int n;
	int node = NUMA_NO_NODE;
	size_t length, i;

	if (sscanf(command, "alloc %u %d", &n, &node) >= 1)
		return keep(n, node);
	if (sscanf(command, "free %u", &n) == 1) {
		free_kept(n);
		return 0;
	}
	if (sscanf(command, "new %31s", name) == 1) {
		free_kept(nr_kept);
		return new_cache(name);
	}
	length = strcspn(command, "!");
	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (strlen(faults[i].name) == length && !strncmp(faults[i].name, command, length))
			return plant(&faults[i], command[length] == '!');
	return -EINVAL;
}

static ssize_t slabbug_write(struct file *f, const char __user *from, size_t count, loff_t *pos)
{
	char command[64] = {};
	int result;

	if (count >= sizeof(command))
		return -EINVAL;
	if (copy_from_user(command, from, count))
		return -EFAULT;
	mutex_lock(&busy);
	result = obey(strim(command));
	mutex_unlock(&busy);
	return result ? result : count;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.write = slabbug_write,
	.llseek = noop_llseek,
};

static int __init slabbug_init(void)
{
	int result;

	if (size < 16 || size > 2048 || size % sizeof(void *))
		return -EINVAL;
	kept = kvcalloc(KEPT_MAX, sizeof(*kept), GFP_KERNEL);
	if (!kept)
		return -ENOMEM;
	result = new_cache("slabbug");
	if (result) {
		kvfree(kept);
		return result;
	}
	file = debugfs_create_file("slabbug", 0200, NULL, NULL, &operations);
	return 0;
}

static void __exit slabbug_exit(void)
{
	debugfs_remove(file);
	free_kept(nr_kept);
	while (nr_caches)
		kmem_cache_destroy(caches[--nr_caches]);
	kvfree(kept);
}

module_init(slabbug_init);
module_exit(slabbug_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Known objects and planted faults, for tests of slabctl");
