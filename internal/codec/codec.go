// Package codec encrypts the payloads of workflows, activities, messages and failures in Temporal with
// AES-256-GCM.
//
// Every encrypted payload names its key, so keys can be rotated: one encrypts, all decrypt. Unencrypted payloads
// are read as they are, so encryption can be enabled at any time and other programs can send plain messages.
// Search attributes, names and ids are never encrypted: the server needs them.
package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
)

// Metadata of an encrypted payload, as in Temporal's samples and tools.
const (
	Encoding = "binary/encrypted"
	metaKey  = "encryption-key-id"
)

// KeySize is the size of a key in bytes.
const KeySize = 32

// Codec encrypts and decrypts payloads. It is safe for concurrent use. Without a current key it does not encrypt.
type Codec struct {
	current string
	keys    map[string]cipher.AEAD
}

// New returns a codec with keys by id. current encrypts; empty: no encryption.
func New(current string, keys map[string][]byte) (*Codec, error) {
	c := &Codec{current: current, keys: map[string]cipher.AEAD{}}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		if len(keys[id]) != KeySize {
			errs = append(errs, fmt.Errorf("key %q has %d bytes; AES-256 needs %d", id, len(keys[id]), KeySize))
			continue
		}
		block, err := aes.NewCipher(keys[id])
		if err == nil {
			c.keys[id], err = cipher.NewGCM(block)
		}
		errs = append(errs, err)
	}
	if _, there := keys[current]; current != "" && !there {
		errs = append(errs, fmt.Errorf("current key %q is not among the keys (%s)", current, c.known()))
	}
	return c, errors.Join(errs...)
}

// Encrypts reports whether new payloads are encrypted.
func (c *Codec) Encrypts() bool { return c.current != "" }

// Converter returns the data converter for clients and workers.
func (c *Codec) Converter() converter.DataConverter {
	return panickingConverter{DataConverter: converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)}
}

// Failures returns the failure converter. With encryption, messages and stack traces are encrypted too.
func (c *Codec) Failures() converter.FailureConverter {
	return temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: c.Converter(), EncodeCommonAttributes: c.Encrypts(),
	})
}

// Encode encrypts payloads with the current key.
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if !c.Encrypts() {
		return payloads, nil
	}
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encrypt a payload: %w", err)
		}
		key := c.keys[c.current]
		nonce := make([]byte, key.NonceSize(), key.NonceSize()+len(plain)+key.Overhead())
		if _, err := rand.Read(nonce); err != nil {
			return nil, fmt.Errorf("encrypt a payload: %w", err)
		}
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Encoding), metaKey: []byte(c.current)},
			Data:     key.Seal(nonce, nonce, plain, []byte(c.current)),
		}
	}
	return out, nil
}

// Decode decrypts payloads of any known key, and returns others unchanged. The error is a [KeyError] if a key is
// missing or wrong.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != Encoding {
			out[i] = p
			continue
		}
		var err error
		if out[i], err = c.open(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *Codec) open(p *commonpb.Payload) (*commonpb.Payload, error) {
	id := string(p.GetMetadata()[metaKey])
	key, there := c.keys[id]
	if !there {
		return nil, &KeyError{ID: id, Known: slices.Sorted(maps.Keys(c.keys))}
	}
	n := key.NonceSize()
	if len(p.GetData()) < n {
		return nil, &KeyError{ID: id, Wrong: true}
	}
	plain, err := key.Open(nil, p.Data[:n], p.Data[n:], []byte(id))
	if err != nil {
		return nil, &KeyError{ID: id, Wrong: true}
	}
	var out commonpb.Payload
	if err := proto.Unmarshal(plain, &out); err != nil {
		return nil, fmt.Errorf("read an encrypted payload: %w", err)
	}
	return &out, nil
}

// KeyError means that a payload cannot be decrypted with the known keys.
type KeyError struct {
	ID    string   // of the required key
	Known []string // ids
	Wrong bool     // the key with that id is another one
}

func (e *KeyError) Error() string {
	if e.Wrong {
		return fmt.Sprintf(
			"decrypt a payload: key %q in codec.keys is not the one that encrypted it, or the payload was changed; "+
				"restore "+
				"the old key, and use another id for a new key", e.ID,
		)
	}
	return fmt.Sprintf(
		"decrypt a payload: key %q is not in codec.keys (%s); add it: a retired key is needed as long as its "+
			"runs are read", e.ID, list(e.Known),
	)
}

func (c *Codec) known() string { return list(slices.Sorted(maps.Keys(c.keys))) }

func list(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, ", ")
}
