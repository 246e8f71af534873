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

type bucket struct {
	b   *blob.Bucket
	url string
}

// ErrNoDriver means that the program has no driver for the URL's scheme. A retry cannot succeed.
var ErrNoDriver = errors.New("this program has no store driver")

func openBucket(ctx context.Context, u *url.URL) (*bucket, error) {
	if !blob.DefaultURLMux().ValidBucketScheme(u.Scheme) {
		return nil, fmt.Errorf("%w of kind %q: use file:///path, s3://, gs:// or azblob://", ErrNoDriver, u.Scheme)
	}
	b, err := blob.DefaultURLMux().OpenBucketURL(ctx, u)
	if err != nil {
		return nil, unreachable(err)
	}
	return &bucket{b: b, url: u.Scheme + "://" + u.Host + u.Path}, nil
}

func (b *bucket) close() error { return b.b.Close() }

func (b *bucket) where(name string) string { return b.url + "/" + name }

// begin returns b: a service makes each put durable.
func (b *bucket) begin() batch { return b }

func (b *bucket) end() error { return nil }

func (b *bucket) sync() error { return nil }

// put always writes: it costs one round trip, like a check, and repairs a damaged blob.
func (b *bucket) put(ctx context.Context, d Digest, from Source) error {
	return b.write(ctx, d.name(), nil, func(w io.Writer) error { return copySource(w, from, d) })
}

func (b *bucket) create(ctx context.Context, name string, data []byte, _ bool) (bool, error) {
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

// unreachable marks errors of an unavailable service as [ErrUnreachable], including a missing bucket.
func unreachable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var named interface{ ErrorCode() string }
	code := gcerrors.Code(err)
	if errors.As(err, &named) && named.ErrorCode() == "NoSuchBucket" ||
		code != gcerrors.NotFound && code != gcerrors.FailedPrecondition {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// write stores what fill writes, or nothing: a writer whose context is cancelled before Close leaves no trace.
func (b *bucket) write(ctx context.Context, name string, o *blob.WriterOptions, fill func(io.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := blob.WriterOptions{ContentType: "application/octet-stream"}
	if o != nil {
		opts.IfNotExist = o.IfNotExist
	}
	w, err := b.b.NewWriter(ctx, name, &opts)
	if err != nil {
		return unreachable(err)
	}
	if err := fill(w); err != nil {
		cancel()
		if cerr := w.Close(); cerr != nil && !errors.Is(cerr, context.Canceled) {
			err = errors.Join(err, cerr)
		}
		return err
	}
	return unreachable(w.Close())
}

func (b *bucket) open(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := b.b.NewReader(ctx, name, nil)
	if err = unreachable(err); gcerrors.Code(err) == gcerrors.NotFound && !errors.Is(err, ErrUnreachable) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (b *bucket) has(ctx context.Context, name string) (bool, error) {
	there, err := b.b.Exists(ctx, name)
	return there, unreachable(err)
}

func (b *bucket) reach(ctx context.Context) error {
	there, err := b.b.IsAccessible(ctx)
	if err == nil && !there {
		return fmt.Errorf("%w: there is no bucket %s", ErrUnreachable, b.url)
	}
	return unreachable(err)
}

func (b *bucket) walk(ctx context.Context, visit func(name string, size int64, written time.Time) error) error {
	return b.each(ctx, "", func(o *blob.ListObject) error { return visit(o.Key, o.Size, o.ModTime) })
}

func (b *bucket) remove(ctx context.Context, name string, written time.Time) (bool, error) {
	at, err := b.b.Attributes(ctx, name)
	// some services round the time of an object to seconds
	if err == nil && at.ModTime.Truncate(time.Second).After(written) {
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
			return unreachable(err)
		}
		if err := visit(o); err != nil {
			return err
		}
	}
}
