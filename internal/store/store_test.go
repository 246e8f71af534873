package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/fakes3"
)

// conformance lists the guarantees of every store.
var conformance = []struct {
	name string
	test func(*testing.T, *store.Store)
}{
	{"blobs", testBlobs},
	{"files", testFiles},
	{"batches", testBatches},
	{"json", testJSON},
	{"missing", testMissing},
	{"bad digests", testBadDigests},
	{"names", testNames},
	{"bad names", testBadNames},
	{"list", testList},
	{"one winner", testOneWinner},
	{"many puts of one blob", testManyPuts},
	{"cancelled", testCancelled},
	{"walk", testWalk},
	{"remove", testRemove},
}

func TestConformance(t *testing.T) {
	media := []struct {
		name string
		url  func(*testing.T) string
	}{
		{"file", folderURL},
		{"s3", fakes3.Start},
		{"s3 with a prefix", func(t *testing.T) string { return fakes3.Start(t) + "&prefix=runs/" }},
	}
	for _, m := range media {
		for _, c := range conformance {
			t.Run(m.name+"/"+c.name, func(t *testing.T) {
				s := must(store.Open(t.Context(), m.url(t)))(t)
				c.test(t, s)
			})
		}
	}
}

// must returns the value of a call that may not fail: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}

func folderURL(t *testing.T) string { return "file://" + filepath.Join(t.TempDir(), "deep", "store") }

func testBlobs(t *testing.T, s *store.Store) {
	for _, data := range [][]byte{nil, []byte("hello"), bytes.Repeat([]byte{0, 0xff}, 1<<17)} {
		d := must(s.Put(t.Context(), data))(t)
		require.Equal(t, store.DigestOf(data), d)
		again := must(s.Put(t.Context(), data))(t)
		require.Equal(t, d, again)
		got := must(s.Get(t.Context(), d))(t)
		require.True(t, bytes.Equal(data, got))
		there := must(s.Has(t.Context(), d))(t)
		require.True(t, there)
	}
	require.Equal(t, store.Digest("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"),
		store.DigestOf([]byte("hello")))
}

func testFiles(t *testing.T, s *store.Store) {
	in := filepath.Join(t.TempDir(), "in")
	data := bytes.Repeat([]byte("0123456789"), 1<<17)
	require.NoError(t, os.WriteFile(in, data, 0o600))
	d := store.DigestOf(data)
	require.NoError(t, s.PutFrom(t.Context(), d, func() (io.ReadCloser, error) { return os.Open(in) }))

	require.True(t, bytes.Equal(data, must(s.Get(t.Context(), d))(t)))

	// one that is uploaded in parts, and one that changes at its end
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20+1)
	d = store.DigestOf(large)
	from := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(large)), nil }
	require.NoError(t, s.PutFrom(t.Context(), d, from))
	got := must(s.Get(t.Context(), d))(t)
	require.True(t, bytes.Equal(large, got))
	changed := store.DigestOf(large[1:])
	require.ErrorIs(t, s.PutFrom(t.Context(), changed, from), store.ErrChanged)
	require.False(t, must(s.Has(t.Context(), changed))(t))

	missing := func() (io.ReadCloser, error) { return os.Open(in + "x") }
	require.ErrorIs(t, s.PutFrom(t.Context(), store.DigestOf([]byte("missing")), missing), os.ErrNotExist)
}

func testBatches(t *testing.T, s *store.Store) {
	b := s.Batch()
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			data := fmt.Appendf(nil, "blob %d", i/2)
			from := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
			if err := b.PutFrom(t.Context(), store.DigestOf(data), from); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.NoError(t, b.End())
	for i := range 20 {
		var got bytes.Buffer
		require.NoError(t, s.Copy(t.Context(), store.DigestOf(fmt.Appendf(nil, "blob %d", i)), &got))
		require.Equal(t, fmt.Sprintf("blob %d", i), got.String())
	}
	other := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("other")), nil }
	wrong := store.DigestOf([]byte("what was promised"))
	require.ErrorIs(t, s.PutFrom(t.Context(), wrong, other), store.ErrChanged)
	there := must(s.Has(t.Context(), wrong))(t)
	require.False(t, there)
}

func testJSON(t *testing.T, s *store.Store) {
	type plan struct{ Name string }
	d := must(s.PutJSON(t.Context(), plan{"p"}))(t)
	var got plan
	require.NoError(t, s.GetJSON(t.Context(), d, &got))
	require.Equal(t, plan{"p"}, got)

	d = must(s.Put(t.Context(), []byte("{")))(t)
	require.ErrorContains(t, s.GetJSON(t.Context(), d, &got), string(d))
}

func testMissing(t *testing.T, s *store.Store) {
	d := store.DigestOf([]byte("never put"))
	_, err := s.Get(t.Context(), d)
	require.ErrorIs(t, err, store.ErrMissing)
	require.ErrorContains(t, err, string(d))

	there := must(s.Has(t.Context(), d))(t)
	require.False(t, there)
	_, err = s.ReadName(t.Context(), "calls/none")
	require.ErrorIs(t, err, store.ErrMissing)
	names := must(s.List(t.Context(), "calls/"))(t)
	require.Empty(t, names)
}

func testBadDigests(t *testing.T, s *store.Store) {
	good := string(store.DigestOf(nil))
	for _, bad := range []string{"", "abc", strings.ToUpper(good), good + "0", "../" + good[3:], good[:63] + "g"} {
		require.False(t, store.Digest(bad).Valid(), bad)
		_, err := s.Get(t.Context(), store.Digest(bad))
		require.ErrorContains(t, err, "invalid digest")
		_, err = s.Has(t.Context(), store.Digest(bad))
		require.ErrorContains(t, err, "invalid digest")
	}
}

func testNames(t *testing.T, s *store.Store) {
	const name = "calls/r-1~a/g0.035.1.-.1/claim-1"
	won := must(s.Create(t.Context(), name, []byte("mine")))(t)
	require.True(t, won)
	won = must(s.Create(t.Context(), name, []byte("yours")))(t)
	require.False(t, won)
	got := must(s.ReadName(t.Context(), name))(t)
	require.Equal(t, "mine", string(got))

	_, err := s.ReadName(t.Context(), "calls/r-1~a")
	require.ErrorIs(t, err, store.ErrMissing, "the beginning of a name is not a name")
	_, err = s.ReadName(t.Context(), name+"/below")
	require.ErrorIs(t, err, store.ErrMissing)
}

func testBadNames(t *testing.T, s *store.Store) {
	bad := []string{
		"", "/a", "a/", "a//b", ".", "..", "a/../b", "a b", "ä", "a\x00", `a\b`, "a:b", "blobs/ab/cd",
		"x.tmp.abc", strings.Repeat("a", 201),
	}
	for _, name := range bad {
		_, err := s.Create(t.Context(), name, nil)
		require.ErrorContains(t, err, "invalid name", "%q", name)
		_, err = s.ReadName(t.Context(), name)
		require.ErrorContains(t, err, "invalid name", "%q", name)
	}
	for _, prefix := range []string{"../", "/", "blobs/"} {
		_, err := s.List(t.Context(), prefix)
		require.Error(t, err, "%q", prefix)
	}
}

func testList(t *testing.T, s *store.Store) {
	for _, name := range []string{"a/2", "a/10", "a/1/x", "ab", "b/1"} {
		must(s.Create(t.Context(), name, nil))(t)
	}
	must(s.Put(t.Context(), []byte("a blob is not a name")))(t)
	tests := []struct {
		prefix string
		want   []string
	}{
		{"", []string{"a/1/x", "a/10", "a/2", "ab", "b/1"}},
		{"a", []string{"a/1/x", "a/10", "a/2", "ab"}},
		{"a/", []string{"a/1/x", "a/10", "a/2"}},
		{"a/1", []string{"a/1/x", "a/10"}},
		{"a/1/x/", []string{}},
		{"c", []string{}},
	}
	for _, tt := range tests {
		got := must(s.List(t.Context(), tt.prefix))(t)
		require.Equal(t, tt.want, got, "prefix %q", tt.prefix)
	}
}

func testOneWinner(t *testing.T, s *store.Store) {
	const callers = 20
	won := make([]bool, callers)
	seen := make([]string, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			var err error
			if won[i], err = s.Create(t.Context(), "calls/c/result", fmt.Appendf(nil, "from %d", i)); err != nil {
				t.Error(err)
			}
			data, err := s.ReadName(t.Context(), "calls/c/result")
			if err != nil {
				t.Error(err)
			}
			seen[i] = string(data)
		})
	}
	all.Wait()
	winner := slices.Index(won, true)
	require.GreaterOrEqual(t, winner, 0, "no create succeeded")
	require.False(t, slices.Contains(won[winner+1:], true), "two won")
	for _, data := range seen {
		require.Equal(t, fmt.Sprintf("from %d", winner), data)
	}
}

func testManyPuts(t *testing.T, s *store.Store) {
	data := bytes.Repeat([]byte("same"), 1000)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			d, err := s.Put(t.Context(), data)
			if err != nil {
				t.Error(err)
			}
			if _, err := s.Get(t.Context(), d); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func testWalk(t *testing.T, s *store.Store) {
	d := must(s.Put(t.Context(), []byte("blob")))(t)
	must(s.Create(t.Context(), "calls/r1/claim-001", []byte("claim")))(t)
	all := walked(t, s)
	require.Len(t, all, 2)
	for name, want := range map[string]store.Object{
		"calls/r1/claim-001": {Size: 5}, "blobs/" + string(d[:2]) + "/" + string(d[2:]): {Digest: d, Size: 4},
	} {
		require.WithinDuration(t, time.Now(), all[name].Written, time.Minute)
		want.Name, want.Written = name, all[name].Written
		require.Equal(t, want, all[name])
	}
	stop := errors.New("seen enough")
	require.ErrorIs(t, s.Walk(t.Context(), func(store.Object) error { return stop }), stop)
}

func walked(t *testing.T, s *store.Store) map[string]store.Object {
	t.Helper()
	all := map[string]store.Object{}
	require.NoError(t, s.Walk(t.Context(), func(o store.Object) error { all[o.Name] = o; return nil }))
	return all
}

func testRemove(t *testing.T, s *store.Store) {
	ctx := t.Context()
	d := must(s.Put(ctx, []byte("blob")))(t)
	kept := must(s.Put(ctx, []byte("kept")))(t)
	must(s.Create(ctx, "calls/r1/result", nil))(t)
	for name, o := range walked(t, s) {
		if o.Digest == kept {
			o.Written = o.Written.Add(-time.Hour) // as if it had been put again since
		}
		removed := must(s.Remove(ctx, o))(t)
		require.Equal(t, o.Digest != kept, removed, name)
	}
	_, err := s.Get(ctx, d)
	require.ErrorIs(t, err, store.ErrMissing)
	must(s.Get(ctx, kept))(t)
	names := must(s.List(ctx, ""))(t)
	require.Empty(t, names)
	removed := must(s.Remove(ctx, store.Object{Name: "calls/r1/result"}))(t)
	require.False(t, removed, "it is gone")
	again := must(s.Put(ctx, []byte("blob")))(t)
	raw := must(s.Get(ctx, again))(t)
	require.Equal(t, "blob", string(raw), "what was removed can be put again")
}

func testCancelled(t *testing.T, s *store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Put(ctx, []byte("late"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Create(ctx, "late", nil)
	require.ErrorIs(t, err, context.Canceled)

	there := must(s.Has(t.Context(), store.DigestOf([]byte("late"))))(t)
	require.False(t, there)
	_, err = s.ReadName(t.Context(), "late")
	require.ErrorIs(t, err, store.ErrMissing)
}

func TestPutAgainUpdatesTime(t *testing.T) {
	ctx, url := t.Context(), folderURL(t)
	s := must(store.Open(ctx, url))(t)
	d := must(s.Put(ctx, []byte("blob")))(t)
	path := filepath.Join(strings.TrimPrefix(url, "file://"), "blobs", string(d[:2]), string(d[2:]))
	old := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(path, old, old))
	require.NoError(t, os.WriteFile(path+".tmp.abcdefghij", nil, 0o600))
	before := walked(t, s)
	require.Len(t, before, 1)
	must(s.Put(ctx, []byte("blob")))(t)
	for name, o := range before {
		require.WithinDuration(t, time.Now(), walked(t, s)[name].Written, time.Minute)
		removed := must(s.Remove(ctx, o))(t)
		require.False(t, removed, "it was put again since it was walked past")
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	tests := []struct{ url, want string }{
		{"", "unknown kind of store"},
		{"/var/lib/passbook", "unknown kind of store"},
		{"ftp://host/x", `unknown kind of store "ftp"`},
		{"file://relative/path", "absolute path"},
		{"file:///x?a=b", "absolute path"},
		{"file://" + file, "not a directory"},
		{"%", "open the store"},
		{"s3://", "unknown kind of store"},
		{"s3://bucket?anonymous=true", `unknown parameter "anonymous"`},
		{"s3://bucket?endpoint=host:9000", "invalid endpoint"},
	}
	for _, tt := range tests {
		_, err := store.Open(t.Context(), tt.url)
		require.ErrorContains(t, err, tt.want, tt.url)
	}
}

func TestUnreachableBucketIsNotMissingBlob(t *testing.T) {
	url, gate := fakes3.StartGated(t)
	s := must(store.Open(t.Context(), url))(t)
	require.NoError(t, s.Reach(t.Context()))
	blob := must(s.Put(t.Context(), []byte("x")))(t)
	nowhere := must(store.Open(t.Context(), strings.Replace(url, "s3://passbook?", "s3://nowhere?", 1)))(t)
	gate.Close()
	for _, row := range []struct {
		name  string
		store *store.Store
	}{{"refused", s}, {"no bucket", nowhere}} {
		name, s := row.name, row.store
		require.ErrorIs(t, s.Reach(t.Context()), store.ErrUnreachable, name)
		_, err := s.Get(t.Context(), blob)
		require.ErrorIs(t, err, store.ErrUnreachable, name)
		require.NotErrorIs(t, err, store.ErrMissing, name)
		_, err = s.ReadName(t.Context(), "calls/a/claim-1")
		require.ErrorIs(t, err, store.ErrUnreachable, name)
		_, err = s.Put(t.Context(), []byte("y"))
		require.ErrorIs(t, err, store.ErrUnreachable, name)
		_, err = s.Create(t.Context(), "calls/a/claim-1", nil)
		require.ErrorIs(t, err, store.ErrUnreachable, name)
		_, err = s.List(t.Context(), "calls/")
		require.ErrorIs(t, err, store.ErrUnreachable, name)
		gate.Open()
	}
	got := must(s.Get(t.Context(), blob))(t)
	require.Equal(t, "x", string(got))
}
