package tree

import (
	"io/fs"
	"maps"
	"time"

	"github.com/passbook-run/passbook/internal/store"
)

// Cache describes a folder as of its last save or checkout: which files need not be read, and which blobs the
// store has. It is valid for one folder and one store, and harmless for others. It is immutable.
type Cache struct {
	store string // URL
	files map[string]known
	blobs map[store.Digest]bool
}

// known is the content of a file at a stamp.
type known struct {
	stamp  stamp
	digest store.Digest
}

// stamp changes with the file. Programs can reset a file's mtime, but not its ctime.
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

// File system clocks move in ticks, and a file that changes twice in one tick keeps its ctime. So a stamp is valid
// only if its ctime was older than a tick, by this much, when it was read.
const (
	fineTick   = 100 * time.Millisecond  // ticks are at most 10 ms, usually 4 ms
	coarseTick = 2500 * time.Millisecond // FAT and HFS+ count in seconds
)

// settled reports whether a later change must change the stamp.
func (s stamp) settled(look time.Time) bool {
	tick := fineTick
	if s.ctime.Nanosecond() == 0 {
		tick = coarseTick
	}
	return look.Sub(s.ctime) > tick
}

// with returns a cache of no files whose store contains a tree, too. What it knew has the nodes of most folders.
func (c *Cache) with(t Tree) *Cache {
	all := &Cache{store: c.store, files: map[string]known{}, blobs: maps.Clone(c.blobs)}
	if len(all.blobs) == 0 {
		_, nodes := t.nodes()
		for d := range nodes {
			all.blobs[d] = true
		}
	}
	for _, e := range t.Entries {
		if e.IsFile() {
			all.blobs[e.Digest] = true
		}
	}
	return all
}

func newCache(s *store.Store) *Cache {
	return &Cache{store: s.URL(), files: map[string]known{}, blobs: map[store.Digest]bool{}}
}

// of returns the cache if it is for this store, else an empty one.
func (c *Cache) of(s *store.Store) *Cache {
	if c == nil || c.store != s.URL() {
		return newCache(s)
	}
	return c
}

// unchanged returns the digest of an unchanged file.
func (c *Cache) unchanged(path string, now stamp) (store.Digest, bool) {
	k, ok := c.files[path]
	return k.digest, ok && k.stamp.equal(now)
}

// remember stores a file's digest, if its stamp is valid.
func (c *Cache) remember(path string, s stamp, d store.Digest, look time.Time) {
	if s.settled(look) {
		c.files[path] = known{stamp: s, digest: d}
	}
}
