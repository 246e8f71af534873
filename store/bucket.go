package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// bucket is a store in a bucket of a service.
type bucket struct {
	b   *blob.Bucket
	url string
}

// ErrNoKind says that no later try opens the store either: its URL names a kind that this program does not know.
var ErrNoKind = errors.New("this program has no store")

func openBucket(ctx context.Context, u *url.URL) (*bucket, error) {
	if !blob.DefaultURLMux().ValidBucketScheme(u.Scheme) {
		return nil, fmt.Errorf("%w of kind %q: use file:///path, s3://, gs:// or azblob://", ErrNoKind, u.Scheme)
	}
	b, err := blob.DefaultURLMux().OpenBucketURL(ctx, u)
	if err != nil {
		return nil, away(err)
	}
	return &bucket{b: b, url: u.Scheme + "://" + u.Host + u.Path}, nil
}

func (b *bucket) close() error { return b.b.Close() }

func (b *bucket) where(name string) string { return b.url + "/" + name }

// begin: a service makes each put durable by itself.
func (b *bucket) begin() batch { return b }

func (b *bucket) end() error { return nil }

// put always writes: that is one round trip, as asking would be, and it heals
// what is damaged.
func (b *bucket) put(ctx context.Context, d Digest, from Source) error {
	return b.write(ctx, d.name(), nil, func(w io.Writer) error { return copySource(w, from, d) })
}

func (b *bucket) create(ctx context.Context, name string, data []byte) (bool, error) {
	err := b.write(ctx, name, &blob.WriterOptions{IfNotExist: true}, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	})
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return false, nil
	}
	return err == nil, err
}

func (b *bucket) replace(ctx context.Context, name string, data []byte) error {
	return b.write(ctx, name, nil, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	})
}

// away marks what a service refuses or does not answer: [ErrUnreachable]. A bucket that does not exist is no object that is missing.
func away(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var named interface{ ErrorCode() string }
	code := gcerrors.Code(err)
	if errors.As(err, &named) && named.ErrorCode() == "NoSuchBucket" || code != gcerrors.NotFound && code != gcerrors.FailedPrecondition {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// write stores what fill gives, or nothing: a writer whose context was
// cancelled before its Close leaves no trace.
func (b *bucket) write(ctx context.Context, name string, o *blob.WriterOptions, fill func(io.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := blob.WriterOptions{ContentType: "application/octet-stream"}
	if o != nil {
		opts.IfNotExist = o.IfNotExist
	}
	w, err := b.b.NewWriter(ctx, name, &opts)
	if err != nil {
		return away(err)
	}
	if err := fill(w); err != nil {
		cancel()
		if cerr := w.Close(); cerr != nil && !errors.Is(cerr, context.Canceled) { // cancelled, it leaves no trace
			err = errors.Join(err, cerr)
		}
		return err
	}
	return away(w.Close())
}

func (b *bucket) open(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := b.b.NewReader(ctx, name, nil)
	if err = away(err); gcerrors.Code(err) == gcerrors.NotFound && !errors.Is(err, ErrUnreachable) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (b *bucket) has(ctx context.Context, name string) (bool, error) {
	there, err := b.b.Exists(ctx, name)
	return there, away(err)
}

// reach lists one object.
func (b *bucket) reach(ctx context.Context) error {
	there, err := b.b.IsAccessible(ctx)
	if err == nil && !there {
		return fmt.Errorf("%w: there is no bucket %s", ErrUnreachable, b.url)
	}
	return away(err)
}

func (b *bucket) walk(ctx context.Context, visit func(name string, size int64, written time.Time) error) error {
	return b.each(ctx, "", func(o *blob.ListObject) error { return visit(o.Key, o.Size, o.ModTime) })
}

func (b *bucket) remove(ctx context.Context, name string, written time.Time) (bool, error) {
	at, err := b.b.Attributes(ctx, name)
	if err == nil && at.ModTime.Truncate(time.Second).After(written) { // some services tell the time of a single object in seconds
		return false, nil
	}
	if err == nil {
		err = b.b.Delete(ctx, name)
	}
	if gcerrors.Code(err) == gcerrors.NotFound {
		return false, nil
	}
	return err == nil, err
}

func (b *bucket) list(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	err := b.each(ctx, prefix, func(o *blob.ListObject) error {
		names = append(names, o.Key)
		return nil
	})
	return names, err
}

func (b *bucket) each(ctx context.Context, prefix string, visit func(*blob.ListObject) error) error {
	all := b.b.List(&blob.ListOptions{Prefix: prefix})
	for {
		o, err := all.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return away(err)
		}
		if err := visit(o); err != nil {
			return err
		}
	}
}
