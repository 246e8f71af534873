// Package tokens keeps the access tokens of the console: a file in the state directory with the name, the access and
// the digest of each token. No token can be read from it.
//
// Programs that change the file at once wait for each other. A file that another user could have read or written is
// refused.
package tokens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/internal/shell"
)

// Prefix begins every token, so that a leaked one is recognized.
const Prefix = "pbk_"

// maxFile is the maximum size of the file.
const maxFile = 1 << 20

// maxTokens keeps the file below its maximum size.
const maxTokens = 1000

// Token is what the file records about a token.
type Token struct {
	Name      string     `json:"name"`
	Can       api.Access `json:"can"`
	Digest    string     `json:"digest"` // SHA-256 of the token, hexadecimal
	CreatedAt string     `json:"created_at"`
}

// File is the file of tokens of a state directory.
type File struct{ path string }

// In returns the file of a state directory, which need not exist.
func In(stateDir string) File { return File{filepath.Join(stateDir, "console", "tokens.json")} }

// content is the file.
type content struct {
	Version int     `json:"version"`
	Tokens  []Token `json:"tokens"`
}

// UnusableError reports a file that cannot be used.
type UnusableError struct {
	Path string
	Why  string
}

func (e *UnusableError) Error() string {
	return fmt.Sprintf("read the tokens of the console: %s %s: remove it, and create the tokens again", e.Path, e.Why)
}

// List returns all tokens, by name.
func (f File) List() ([]Token, error) {
	fi, err := os.Lstat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return []Token{}, nil
	}
	if err != nil {
		return nil, err
	}
	if mode := fi.Mode().Perm(); fi.Mode().IsRegular() && mode&0o077 != 0 {
		return nil, &UnusableError{f.path, fmt.Sprintf("can be read or written by other users (mode %04o)", mode)}
	}
	raw, err := disk.ReadFile(f.path, maxFile)
	if kind := (*disk.KindError)(nil); errors.As(err, &kind) {
		return nil, &UnusableError{f.path, "is " + kind.Kind}
	}
	if err != nil {
		return nil, err
	}
	var c content
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, &UnusableError{f.path, "is damaged: " + err.Error()}
	}
	if c.Version != 1 {
		return nil, &UnusableError{f.path, fmt.Sprintf("has version %d, and this program reads version 1", c.Version)}
	}
	return c.Tokens, nil
}

// name is what a token may be called: the journal shows it.
var name = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// NameError refuses the name of a token.
type NameError struct{ Name, Why string }

func (e *NameError) Error() string { return fmt.Sprintf("token %q: %s", e.Name, e.Why) }

// Create makes a token and returns it. It is on disk when Create returns, and is shown only here.
func (f File) Create(ctx context.Context, called string, can api.Access, now time.Time) (string, error) {
	if !name.MatchString(called) {
		return "", &NameError{called, "use 1 to 64 letters, digits, dots, hyphens and underscores"}
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", err
	}
	text := Prefix + base64.RawURLEncoding.EncodeToString(secret)
	err := f.change(ctx, "create token "+called, func(all []Token) ([]Token, error) {
		switch {
		case slices.ContainsFunc(all, func(t Token) bool { return t.Name == called }):
			return nil, &NameError{called, shell.Sprintf("it exists; use another name, or revoke it first: starter token "+
				"revoke %s", called)}
		case len(all) >= maxTokens:
			return nil, &NameError{called, fmt.Sprintf("there are %d tokens, which is the maximum; revoke some first: starter "+
				"token revoke NAME", len(all))}
		}
		all = append(all, Token{called, can, digest(text), now.UTC().Format(time.RFC3339)})
		slices.SortFunc(all, func(x, y Token) int {
			if x.Name < y.Name {
				return -1
			}
			return 1
		})
		return all, nil
	})
	return text, err
}

// Revoke removes a token. A running console refuses it from then on.
func (f File) Revoke(ctx context.Context, called string) error {
	return f.change(ctx, "revoke token "+called, func(all []Token) ([]Token, error) {
		i := slices.IndexFunc(all, func(t Token) bool { return t.Name == called })
		if i < 0 {
			return nil, &NameError{called, "there is no such token; to list them, run: starter token list"}
		}
		return slices.Delete(all, i, i+1), nil
	})
}

// change replaces the file, one program after another.
func (f File) change(ctx context.Context, what string, edit func([]Token) ([]Token, error)) (err error) {
	defer func() {
		if err != nil && !errors.As(err, new(*NameError)) {
			err = fmt.Errorf("%s: %w", what, err)
		}
	}()
	if err := (disk.Disk{}).Mkdir(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	lock, err := (disk.Disk{}).WaitLock(ctx, f.path+".lock", disk.Self("a change of the console's tokens", time.Now()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	all, err := f.List()
	if err != nil {
		return err
	}
	if all, err = edit(all); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(content{1, all}, "", "  ")
	if err != nil {
		return err
	}
	return disk.Disk{}.WriteFile(f.path, append(raw, '\n'), 0o600)
}

// Find returns the token that a client sent; false: there is none, or it was revoked. The time that it takes does not
// depend on which digests are similar.
func (f File) Find(text string) (Token, bool, error) {
	all, err := f.List()
	if err != nil {
		return Token{}, false, err
	}
	sent, found, at := digest(text), 0, 0
	for i, t := range all {
		same := subtle.ConstantTimeCompare([]byte(sent), []byte(t.Digest))
		found, at = found|same, subtle.ConstantTimeSelect(same, i, at)
	}
	if found == 0 {
		return Token{}, false, nil
	}
	return all[at], true, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
