// Package codec encrypts what Temporal keeps: the payloads of workflows, activities, messages and failures, with AES-256-GCM.
//
// Every encrypted payload names the key that it needs, so keys can be changed: one encrypts, all read. What is not encrypted is read as it is, so
// encryption can be switched on at any time, and messages of other programs need not know of it. Search attributes, names and ids are never
// encrypted: the server has to read them.
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

// Metadata of an encrypted payload. The names are those that Temporal's samples and tools use.
const (
	Encoding = "binary/encrypted"
	metaKey  = "encryption-key-id"
)

// KeySize is how long a key is, in bytes.
const KeySize = 32

// Codec encrypts and reads payloads, for any number of goroutines. One without a current key encrypts nothing.
type Codec struct {
	current string
	keys    map[string]cipher.AEAD
}

// New makes a codec of keys by their ids. current is the one that encrypts; empty: nothing is encrypted.
func New(current string, keys map[string][]byte) (*Codec, error) {
	c := &Codec{current: current, keys: map[string]cipher.AEAD{}}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		if len(keys[id]) != KeySize {
			errs = append(errs, fmt.Errorf("key %q has %d bytes; AES-256 takes %d", id, len(keys[id]), KeySize))
			continue
		}
		block, err := aes.NewCipher(keys[id])
		if err == nil {
			c.keys[id], err = cipher.NewGCM(block)
		}
		errs = append(errs, err)
	}
	if _, there := keys[current]; current != "" && !there {
		errs = append(errs, fmt.Errorf("key %q is to encrypt, and is not among the keys (%s)", current, c.known()))
	}
	return c, errors.Join(errs...)
}

// Encrypts says whether new payloads are encrypted.
func (c *Codec) Encrypts() bool { return c.current != "" }

// Converter is the data converter for everything that speaks to Temporal.
func (c *Codec) Converter() converter.DataConverter {
	return patient{DataConverter: converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)}
}

// Failures converts errors. Where payloads are encrypted, their messages and stacks are too.
func (c *Codec) Failures() converter.FailureConverter {
	return temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: c.Converter(), EncodeCommonAttributes: c.Encrypts()})
}

// Encode encrypts whole payloads with the current key.
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

// Decode reads payloads that any of the keys has encrypted, and gives others as they are. The error is a [KeyError] where a key is missing or is
// not the right one.
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

// KeyError says that a payload cannot be read with the keys that are there.
type KeyError struct {
	ID    string   // of the key that it needs
	Known []string // ids
	Wrong bool     // there is a key of that id, and it is another one
}

func (e *KeyError) Error() string {
	if e.Wrong {
		return fmt.Sprintf("what Temporal keeps was encrypted with another key %q than the one under codec.keys, or was changed since: put the old key back, and give a new key an id of its own", e.ID)
	}
	return fmt.Sprintf("what Temporal keeps was encrypted with the key %q, which is not under codec.keys (%s): add it there; a retired key is needed as long as its runs are read", e.ID, listed(e.Known))
}

func (c *Codec) known() string { return listed(slices.Sorted(maps.Keys(c.keys))) }

func listed(ids []string) string {
	if len(ids) == 0 {
		return "there are none"
	}
	return "there are: " + strings.Join(ids, ", ")
}
