// Package grants signs what the activities of a run may use, and checks it.
//
// Every workflow in a Temporal namespace can schedule Passbook's activities, and all who may start workflows there
// could name a directory, a store and a plan with other commands. A worker therefore executes an activity only
// if each use in its input has a grant: a message authentication code (HMAC-SHA-256, 128 bits) by a key that only the
// programs of the host have, or those of the cluster.
package grants

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/keyfile"
	"github.com/passbook-run/passbook/internal/shell"
)

// File is the key of the host, in the state directory: 32 random bytes in Base64.
const File = "grant.key"

// Key signs and checks grants. A nil key signs nothing and refuses nothing.
type Key struct {
	secret []byte
	from   string   // path, for messages
	limits []string // if grants are not checked: the stores and the roots of run directories that may be used
	stores []string
	open   bool // grants are not checked
}

// RefusedError reports a use that the key did not grant.
type RefusedError struct {
	What    string // of the use: a directory, a plan
	Run     string // whose use it is; empty: unknown
	Missing bool   // there is no grant
	Key     string // path of the key that it was checked with
	Limit   string // if grants are not checked: why the use is outside of the settings
}

func (e *RefusedError) Error() string {
	switch {
	case e.Limit != "":
		return fmt.Sprintf("use of %s refused: %s", e.What, e.Limit)
	case e.Missing && e.Run == "":
		return fmt.Sprintf("use of %s refused: it has no grant, because an earlier Passbook or another program started it", e.What)
	case e.Missing:
		return fmt.Sprintf("use of %s refused: it has no grant, because an earlier Passbook or another program started it; "+
			"continue the run with \"%s\" (if a question is open: \"%s\")", e.What,
			shell.Line("starter", "resume", e.Run), shell.Line("starter", "decide", e.Run))
	}
	text := fmt.Sprintf("use of %s refused: it was not granted with the key %s of this worker. If the run was started on "+
		"another host, give both one key (PASSBOOK_GRANT_KEY_FILE)", e.What, e.Key)
	if e.Run != "" {
		text += fmt.Sprintf("; if the key is new, run \"%s\"", shell.Line("starter", "resume", e.Run))
	}
	return text
}

// KeyError reports a key that cannot be used. It does not contain the key.
type KeyError struct{ Cause error }

func (e *KeyError) Error() string { return "read the key for grants: " + e.Cause.Error() }

func (e *KeyError) Unwrap() error { return e.Cause }

// Load returns the key of the settings: that of grant.key_file, or the host's, which the first call creates.
func Load(s config.Settings) (*Key, error) {
	k := &Key{from: s.Grant.KeyFile, open: s.Grant.Disable}
	if k.open {
		k.stores = append([]string{s.Store}, s.Grant.Stores...)
		k.limits = s.Grant.Roots
	}
	var err error
	if k.from == "" {
		k.from = filepath.Join(s.StateDir, File)
		own := keyfile.File{Path: k.from, Replace: `remove it and resume open runs with "starter resume RUN"`}
		k.secret, err = own.Load()
	} else {
		k.secret, err = keyfile.File{Path: k.from, Replace: `create a key with "starter grant key"`}.Read()
	}
	if err != nil {
		return nil, &KeyError{err}
	}
	return k, nil
}

// Sign returns the grant of a use.
func (k *Key) Sign(p contract.Permission) string {
	if k == nil {
		return ""
	}
	text, err := json.Marshal(append([]string{"passbook grant 1", p.Kind}, p.Values...))
	if err != nil {
		return "" // strings are always encoded
	}
	mac := hmac.New(sha256.New, k.secret)
	mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// Derive returns a key for another purpose, which all programs with this key get. It discloses nothing about this key.
func (k *Key) Derive(purpose string) []byte {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write([]byte("passbook key 1 " + purpose))
	return mac.Sum(nil)
}

// Plan returns the use of a plan by the run of a target, with its grant.
func (k *Key) Plan(t contract.Target, plan, inputs string) contract.PlanUse {
	u := contract.PlanUse{Plan: plan, Inputs: inputs}
	u.PlanGrant = k.Sign(t.PlanPermission(u))
	return u
}

// Check returns a [RefusedError] if a use of an input is not granted.
func (k *Key) Check(in contract.Granted) error {
	if k == nil {
		return nil
	}
	for _, p := range in.Permissions() {
		if k.open {
			if err := k.within(p); err != nil {
				return err
			}
			continue
		}
		if !hmac.Equal([]byte(p.Grant), []byte(k.Sign(p))) {
			return &RefusedError{What: describe(p), Run: runOf(p), Missing: p.Grant == "", Key: k.from}
		}
	}
	return nil
}

// within checks a use against the settings: the stores, and the folders of run directories.
func (k *Key) within(p contract.Permission) error {
	switch p.Kind {
	case contract.KindDirectory:
		dir, store := p.Values[1], p.Values[2]
		if err := k.knows(p, store); err != nil || len(k.limits) == 0 || below(dir, k.limits) {
			return err
		}
		return &RefusedError{What: describe(p), Limit: "it is outside of grant.roots (" + strings.Join(k.limits, ", ") + ")"}
	case contract.KindPlan:
		return k.knows(p, p.Values[1])
	}
	return nil
}

func (k *Key) knows(p contract.Permission, store string) error {
	if slices.Contains(k.stores, store) {
		return nil
	}
	return &RefusedError{What: describe(p), Limit: fmt.Sprintf("its store %s is not that of the settings, nor in "+
		"grant.stores", config.Masked(store))}
}

func below(dir string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		rel, err := filepath.Rel(root, dir)
		return err == nil && filepath.IsLocal(rel)
	})
}

// describe names a use: its kind, and what identifies it for an operator.
// runOf is the run that uses something; empty: it does not exist yet, or there is none.
func runOf(p contract.Permission) string {
	switch p.Kind {
	case contract.KindDirectory, contract.KindPlan, contract.KindEpoch:
		return p.Values[0]
	}
	return ""
}

func describe(p contract.Permission) string {
	switch p.Kind {
	case contract.KindDirectory:
		return fmt.Sprintf("directory %s for run %s", p.Values[1], p.Values[0])
	case contract.KindPlan:
		return fmt.Sprintf("plan %.12s for run %s", p.Values[2], p.Values[0])
	case contract.KindEpoch:
		return fmt.Sprintf("epoch %s of run %s", p.Values[1], p.Values[0])
	case contract.KindExamine:
		return "the programs of agents"
	}
	return p.Kind + " " + p.Values[0]
}
