package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Digest is the SHA-256 of a blob in 64 lower-case hex digits.
type Digest string

// DigestOf returns the digest of data.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest(hex.EncodeToString(sum[:]))
}

// Valid reports whether d has the form of a digest.
func (d Digest) Valid() bool {
	if len(d) != 2*sha256.Size {
		return false
	}
	for _, c := range []byte(d) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func (d Digest) check() error {
	if d.Valid() {
		return nil
	}
	return fmt.Errorf("invalid digest %q: want 64 lower-case hex digits", string(d))
}

// name returns the name of the blob in the store.
func (d Digest) name() string { return blobs + string(d[:2]) + "/" + string(d[2:]) }

// copyDigest copies r to w and returns digest and size.
func copyDigest(w io.Writer, r io.Reader) (Digest, int64, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), r)
	return Digest(hex.EncodeToString(h.Sum(nil))), n, err
}
