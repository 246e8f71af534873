package tree

import (
	"io/fs"
	"time"

	"github.com/passbook-run/passbook/store"
)

// Cache is what is known of a folder since it was last saved or checked out:
// which files need not be read again, and which blobs are in the store. It is
// of one folder and one store; of others it is no use, and no harm. It does not
// change once made.
type Cache struct {
	store string // URL
	files map[string]known
	blobs map[store.Digest]bool
}

// known is a file's content at a stamp.
type known struct {
	stamp  stamp
	digest store.Digest
}

// stamp is what changes when a file does. Programs may set a file's mtime back,
// but not its ctime.
type stamp struct {
	inode uint64
	size  int64
	mtime time.Time
	ctime time.Time
}

func stampOf(info fs.FileInfo) stamp {
	inode, ctime := status(info)
	return stamp{inode: inode, size: info.Size(), mtime: info.ModTime(), ctime: ctime}
}

func (s stamp) equal(o stamp) bool {
	return s.inode == o.inode && s.size == o.size && s.mtime.Equal(o.mtime) && s.ctime.Equal(o.ctime)
}

// Clocks of file systems move in ticks, and a file that is changed twice in one
// tick has one ctime for both. So a stamp is worth something only when its
// ctime was longer ago than a tick, by this much, at the time of the look.
const (
	fineTick   = 100 * time.Millisecond  // ticks are of 10 ms at most, mostly 4
	coarseTick = 2500 * time.Millisecond // FAT and HFS+ count in seconds
)

// settled says whether a later change, after the look, must change the stamp.
func (s stamp) settled(look time.Time) bool {
	tick := fineTick
	if s.ctime.Nanosecond() == 0 {
		tick = coarseTick
	}
	return look.Sub(s.ctime) > tick
}

// Known is a cache for a store that holds the tree: its blobs need not be put
// again, but every file is read. [Save] and [Checkout] give better ones.
func Known(s *store.Store, t Tree) *Cache {
	c := newCache(s)
	_, nodes := t.nodes()
	for d := range nodes {
		c.blobs[d] = true
	}
	for _, e := range t.Entries {
		if e.IsFile() {
			c.blobs[e.Digest] = true
		}
	}
	return c
}

func newCache(s *store.Store) *Cache {
	return &Cache{store: s.URL(), files: map[string]known{}, blobs: map[store.Digest]bool{}}
}

// of gives the cache if it is of this store, else an empty one.
func (c *Cache) of(s *store.Store) *Cache {
	if c == nil || c.store != s.URL() {
		return newCache(s)
	}
	return c
}

// unchanged gives the digest of a file that is as it was.
func (c *Cache) unchanged(path string, now stamp) (store.Digest, bool) {
	k, ok := c.files[path]
	return k.digest, ok && k.stamp.equal(now)
}

// remember keeps what a file held, if a change will show.
func (c *Cache) remember(path string, s stamp, d store.Digest, look time.Time) {
	if s.settled(look) {
		c.files[path] = known{stamp: s, digest: d}
	}
}
