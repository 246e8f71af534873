package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
)

// The buckets of the file. Keys are text, and values JSON.
const (
	metaRows    = "meta"     // version: of the file
	callRows    = "calls"    // CALL#DELIVERY: a Call whose cost may still change
	settledRows = "settled"  // CALL#DELIVERY: when it was reserved; its cost is part of a sum
	sumRows     = "sums"     // a quarter of an hour in UTC: what the calls that were reserved in it have cost
	meanRows    = "means"    // PIPELINE ROLE, or ROLE of all pipelines: what a call needs; empty: how long it takes
	accountRows = "accounts" // id of an account: that its provider does not answer
	waitingRows = "waiting"  // a number, in order: a call that waits for a place
	storeRows   = "stores"   // URL: whether the calls in a store are part of the file
)

// keeps is how long rows are kept that no call uses.
const keeps = 8 * 24 * time.Hour

// Call is one delivery of a call of an agent, as it is reserved.
type Call struct {
	ID       string `json:"call"` // with the digest of what is asked
	Delivery int    `json:"delivery"`
	Run      string `json:"run"`
	Pipeline string `json:"pipeline,omitempty"`
	Role     string `json:"role,omitempty"`
	Account
	Store  string           `json:"store,omitempty"` // URL without secrets
	Worker process.Identity `json:"worker,omitzero"` // that reserved it
	Holder process.Identity `json:"holder,omitzero"` // its supervisor: the call runs as long as it does
	At     string           `json:"at,omitempty"`

	USD     float64 `json:"usd,omitempty"` // reserved
	Tokens  int64   `json:"tokens,omitempty"`
	Unknown bool    `json:"unknown,omitempty"` // what it needs was not known

	Parts []string `json:"parts,omitempty"` // of its cost that are part of a sum
	Lost  bool     `json:"lost,omitempty"`  // it ended without a record; a later part replaces this
}

func (c Call) key() string { return fmt.Sprintf("%s#%03d", c.ID, c.Delivery) }

// open reports whether nothing is known of the end of the call.
func (c Call) open() bool { return len(c.Parts) == 0 && !c.Lost }

// runs reports whether the call takes a place.
func (c Call) runs() bool { return c.open() && c.Holder.Alive() }

// tx is one transaction. Its first error stays, as in a bufio.Writer, and nothing is written then.
type tx struct {
	b     *bbolt.Tx // nil: there is no file
	g     *Gate
	now   time.Time
	queue []entry[Waiting] // as it was read; nil: it was not
	dirty bool
	err   error
}

// begin makes a new file complete.
func (x *tx) begin() {
	for _, name := range []string{metaRows, callRows, settledRows, sumRows, meanRows, accountRows, waitingRows, storeRows} {
		if _, err := x.b.CreateBucketIfNotExists([]byte(name)); err != nil {
			x.err = err
			return
		}
	}
	if x.known() || x.err != nil {
		return
	}
	x.put(metaRows, "version", version)
	if x.g.opt.Stores != nil {
		for _, url := range x.g.opt.Stores() {
			x.put(storeRows, url, known{})
		}
	}
}

// known reports whether the file has a version, and refuses another one.
func (x *tx) known() bool {
	found, ok := get[int](x, metaRows, "version")
	if ok && found != version {
		x.err = fmt.Errorf("read %s: its version is %d, and this program knows version %d", x.g.path, found, version)
	}
	return ok
}

type entry[T any] struct {
	key string
	row T
}

// list returns the rows whose keys are no less than from.
func list[T any](x *tx, bucket, from string) (all []entry[T]) {
	if x.b == nil || x.err != nil {
		return nil
	}
	b := x.b.Bucket([]byte(bucket))
	if b == nil {
		return nil
	}
	cursor := b.Cursor()
	for k, v := cursor.Seek([]byte(from)); k != nil && x.err == nil; k, v = cursor.Next() {
		e := entry[T]{key: string(k)}
		if err := json.Unmarshal(bytes.Clone(v), &e.row); err != nil {
			x.err = &DamageError{x.g.path, fmt.Errorf("row %s of %s: %w", k, bucket, err)}
		}
		all = append(all, e)
	}
	return all
}

// has reports whether a key begins with a prefix.
func (x *tx) has(bucket, prefix string) bool {
	if x.b == nil || x.err != nil {
		return false
	}
	b := x.b.Bucket([]byte(bucket))
	if b == nil {
		return false
	}
	k, _ := b.Cursor().Seek([]byte(prefix))
	return strings.HasPrefix(string(k), prefix)
}

func get[T any](x *tx, bucket, key string) (row T, ok bool) {
	if x.b == nil || x.err != nil {
		return row, false
	}
	b := x.b.Bucket([]byte(bucket))
	if b == nil {
		return row, false
	}
	v := b.Get([]byte(key))
	if v == nil {
		return row, false
	}
	if err := json.Unmarshal(bytes.Clone(v), &row); err != nil {
		x.err = &DamageError{x.g.path, fmt.Errorf("row %s of %s: %w", key, bucket, err)}
	}
	return row, x.err == nil
}

func (x *tx) put(bucket, key string, row any) {
	x.queue = nil
	v, err := json.Marshal(row)
	if err == nil && x.err == nil {
		err = x.b.Bucket([]byte(bucket)).Put([]byte(key), v)
	}
	if x.err == nil {
		x.err, x.dirty = err, true
	}
}

func (x *tx) delete(bucket, key string) {
	x.queue = nil
	if x.err == nil {
		x.err, x.dirty = x.b.Bucket([]byte(bucket)).Delete([]byte(key)), true
	}
}

func (x *tx) at() string { return run.Time(x.now) }

// since is the time from one in the file until now. A clock that was set back has none.
func (x *tx) since(at string) time.Duration {
	t, err := time.Parse(run.TimeFormat, at)
	if err != nil {
		return keeps
	}
	return max(0, x.now.Sub(t))
}

// prune removes rows that are older than any that is used.
func (x *tx) prune() {
	for _, e := range list[string](x, settledRows, "") {
		if x.since(e.row) > keeps {
			x.delete(settledRows, e.key)
		}
	}
	for _, e := range list[Call](x, callRows, "") {
		if !e.row.runs() && x.since(e.row.At) > keeps {
			x.delete(callRows, e.key)
		}
	}
	last := x.now.Add(-keeps).UTC().Format(quarter)
	for _, e := range list[sum](x, sumRows, "") {
		if e.key < last {
			x.delete(sumRows, e.key)
		}
	}
}
