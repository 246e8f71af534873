// Package identity signs messages to runs and verifies who sent them.
//
// Each state directory has an Ed25519 key. Programs of that user sign with it; workers trust it and the keys in the
// setting decide.identities. The Temporal CLI, tctl and the Web UI cannot sign: their messages have no identity.
package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/keyfile"
)

// File is the private key, in the state directory: the seed of 32 bytes in Base64.
const File = "identity.key"

// KeyError reports a key or a setting that cannot be used. It contains no private key.
type KeyError struct{ Cause error }

func (e *KeyError) Error() string { return "read the identity: " + e.Cause.Error() }

func (e *KeyError) Unwrap() error { return e.Cause }

// Own is the identity of this user's programs.
type Own struct {
	Name string // of the user
	key  ed25519.PrivateKey
}

// Load returns the identity of a state directory. The first call creates its key.
func Load(stateDir string) (Own, error) {
	seed, err := keyfile.File{Path: filepath.Join(stateDir, File), Replace: "remove it to create another key, and " +
		"replace its public key in decide.identities of other hosts"}.Load()
	if err != nil {
		return Own{}, &KeyError{err}
	}
	return Own{Name: userName(), key: ed25519.NewKeyFromSeed(seed)}, nil
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "user"
}

// Public returns the public key in Base64.
func (o Own) Public() string {
	return base64.StdEncoding.EncodeToString(o.key.Public().(ed25519.PublicKey))
}

// Sign signs a text.
func (o Own) Sign(text []byte) *contract.Signature {
	return &contract.Signature{Key: o.Public(), Value: base64.StdEncoding.EncodeToString(ed25519.Sign(o.key, text))}
}

// Trusted are the identities that a worker accepts, by public key.
type Trusted struct {
	names        map[string]string
	denyUnsigned bool
}

// Trust returns the identities of the settings: that of the state directory and those of decide.identities. The error
// lists everything that is wrong.
func Trust(s config.Settings) (*Trusted, error) {
	own, err := Load(s.StateDir)
	if err != nil {
		return nil, err
	}
	t := &Trusted{names: map[string]string{}, denyUnsigned: s.Decide.Unsigned == config.Deny}
	var errs []error
	for _, entry := range s.Decide.Identities {
		name, key, ok := strings.Cut(entry, "=")
		raw, err := base64.StdEncoding.DecodeString(key)
		if !ok || name == "" || err != nil || len(raw) != ed25519.PublicKeySize {
			errs = append(errs, fmt.Errorf("decide.identities: %q is not NAME=KEY: \"starter identity\" prints the entry of "+
				"a user", entry))
			continue
		}
		t.names[key] = name
	}
	t.names[own.Public()] = own.Name
	if err := errors.Join(errs...); err != nil {
		return nil, &KeyError{err}
	}
	return t, nil
}

// Verify returns who signed a text: "key NAME", or "none" without a signature. refused is the reason why the message is
// not accepted; a signature that is wrong or unknown is never accepted as none.
func (t *Trusted) Verify(text []byte, s *contract.Signature) (auth, refused string) {
	if s == nil {
		if t.denyUnsigned {
			return contract.AuthNone, "it is not signed, and decide.unsigned is deny: send it with the starter"
		}
		return contract.AuthNone, ""
	}
	name, ok := t.names[s.Key]
	if !ok {
		return contract.AuthNone, fmt.Sprintf("its key %.12s… is not among decide.identities of the worker: add the line "+
			"that \"starter identity\" prints for its sender", s.Key)
	}
	key, err := base64.StdEncoding.DecodeString(s.Key)
	if err != nil {
		return contract.AuthNone, "its key is not Base64"
	}
	value, err := base64.StdEncoding.DecodeString(s.Value)
	if err != nil || !ed25519.Verify(key, text, value) {
		return contract.AuthNone, "its signature by " + name + " does not match: the message was changed, or is about " +
			"another run or question"
	}
	return "key " + name, ""
}
