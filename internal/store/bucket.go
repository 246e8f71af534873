package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a store in a bucket of S3 or of a service with its interface.
type bucket struct {
	s3     minio.Core
	name   string
	prefix string // of all keys
}

// ErrScheme means that a URL is neither of a folder nor of a bucket. A retry cannot succeed.
var ErrScheme = errors.New("unknown kind of store")

// partSize is the size from which an object is uploaded in parts of this size.
const partSize = 16 << 20

// transport returns the connections of all buckets.
var transport = sync.OnceValues(func() (*http.Transport, error) { return minio.DefaultTransport(true) })

func openBucket(u *url.URL) (*bucket, error) {
	if u.Scheme != "s3" || u.Host == "" {
		return nil, fmt.Errorf("%w %q: use file:///path or s3://bucket", ErrScheme, u.Scheme)
	}
	host, o, err := s3Options(u.Query())
	if err != nil {
		return nil, err
	}
	// Without credentials the client would send requests that are not signed.
	if found, err := o.Creds.GetWithContext(&credentials.CredContext{Client: http.DefaultClient}); err != nil || found.SignerType.IsAnonymous() {
		return nil, errors.Join(errors.New("no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a "+
			"profile in ~/.aws/credentials, or give the machine a role"), err)
	}
	client, err := minio.NewCore(host, o)
	if err != nil {
		return nil, err
	}
	return &bucket{s3: *client, name: u.Host, prefix: u.Query().Get("prefix")}, nil
}

// s3Options returns the host of the service and the options of its client.
func s3Options(q url.Values) (string, *minio.Options, error) {
	for key := range q {
		switch key {
		case "endpoint", "prefix", "profile", "region", "use_path_style":
		default:
			return "", nil, fmt.Errorf("unknown parameter %q: use endpoint, prefix, profile, region or use_path_style", key)
		}
	}
	endpoint := cmp.Or(q.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"),
		"https://s3.amazonaws.com")
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return "", nil, fmt.Errorf("invalid endpoint %q: want a URL such as http://host:9000", endpoint)
	}
	shared, err := transport()
	if err != nil {
		return "", nil, err
	}
	o := &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{},
			&credentials.FileAWSCredentials{Profile: q.Get("profile")},
			// without a limit, a host outside of the cloud waits minutes for the metadata service
			&credentials.IAM{Client: &http.Client{Timeout: 5 * time.Second}}}),
		Secure:     at.Scheme == "https",
		Transport:  shared,
		Region:     cmp.Or(q.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		MaxRetries: 3, // callers retry too, and show why
	}
	switch q.Get("use_path_style") {
	case "true":
		o.BucketLookup = minio.BucketLookupPath
	case "false":
		o.BucketLookup = minio.BucketLookupDNS
	}
	return at.Host, o, nil
}

func (b *bucket) where(name string) string { return "s3://" + b.name + "/" + b.prefix + name }

// begin returns b: a service makes each put durable.
func (b *bucket) begin() batch { return b }

func (b *bucket) end() error { return nil }

// put always writes: it costs one round trip, like a check, and repairs a damaged blob. It stores nothing if the
// source fails or changed: a small object is sent when it was read, and a large one exists when all its parts do.
func (b *bucket) put(ctx context.Context, d Digest, from Source) error {
	source, err := from()
	if err != nil {
		return err
	}
	r := &verifiedReader{r: source, sum: sha256.New(), want: d}
	head, err := io.ReadAll(io.LimitReader(r, partSize))
	switch {
	case err != nil:
	case len(head) < partSize:
		err = b.write(ctx, d.name(), head, minio.PutObjectOptions{})
	default:
		_, err = b.s3.Client.PutObject(ctx, b.name, b.prefix+d.name(), io.MultiReader(bytes.NewReader(head), r), -1,
			minio.PutObjectOptions{PartSize: partSize, DisableContentSha256: true})
		err = unreachable(err)
	}
	return errors.Join(cmp.Or(r.err, err), source.Close())
}

// verifiedReader fails at the end of what it reads if that has another digest.
type verifiedReader struct {
	r    io.Reader
	sum  hash.Hash
	want Digest
	err  error // of the source
}

func (v *verifiedReader) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.sum.Write(p[:n])
	if err == io.EOF && Digest(hex.EncodeToString(v.sum.Sum(nil))) != v.want {
		err = ErrChanged
	}
	if err != nil && err != io.EOF {
		v.err = err
	}
	return n, err
}

func (b *bucket) create(ctx context.Context, name string, data []byte) (bool, error) {
	var o minio.PutObjectOptions
	o.SetMatchETagExcept("*")
	err := b.write(ctx, name, data, o)
	if code(err) == minio.PreconditionFailed {
		return false, nil
	}
	return err == nil, err
}

func (b *bucket) replace(ctx context.Context, name string, data []byte) error {
	return b.write(ctx, name, data, minio.PutObjectOptions{})
}

// write sends an object in one request. The service compares it with the digest.
func (b *bucket) write(ctx context.Context, name string, data []byte, o minio.PutObjectOptions) error {
	o.DisableContentSha256 = true // which would send the digests of pieces
	_, err := b.s3.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(data), int64(len(data)), "",
		string(DigestOf(data)), o)
	return unreachable(err)
}

// code returns the service's name for an error.
func code(err error) string {
	var e minio.ErrorResponse
	errors.As(err, &e)
	return e.Code
}

// unreachable marks errors of an unavailable service as [ErrUnreachable], including a missing bucket.
func unreachable(err error) error {
	switch code(err) {
	case minio.NoSuchKey, minio.PreconditionFailed:
		return err
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

func (b *bucket) open(ctx context.Context, name string) (io.ReadCloser, error) {
	r, _, _, err := b.s3.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if code(err) == minio.NoSuchKey {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, unreachable(err)
	}
	return r, nil
}

func (b *bucket) has(ctx context.Context, name string) (bool, error) {
	_, err := b.s3.StatObject(ctx, b.name, b.prefix+name, minio.StatObjectOptions{})
	if code(err) == minio.NoSuchKey {
		return false, nil
	}
	return err == nil, unreachable(err)
}

func (b *bucket) reach(ctx context.Context) error {
	there, err := b.s3.BucketExists(ctx, b.name)
	if err == nil && !there {
		return fmt.Errorf("%w: there is no bucket %s", ErrUnreachable, b.name)
	}
	return unreachable(err)
}

func (b *bucket) walk(ctx context.Context, prefix string, visit visitor) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range b.s3.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return unreachable(o.Err)
		}
		if err := visit(strings.TrimPrefix(o.Key, b.prefix), o.Size, o.LastModified); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (b *bucket) remove(ctx context.Context, name string, written time.Time) (bool, error) {
	o, err := b.s3.StatObject(ctx, b.name, b.prefix+name, minio.StatObjectOptions{})
	// some services round the time of an object to seconds
	if code(err) == minio.NoSuchKey || err == nil && o.LastModified.Truncate(time.Second).After(written) {
		return false, nil
	}
	if err == nil {
		err = b.s3.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})
	}
	return err == nil, err
}
