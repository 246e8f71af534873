package login

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/regular"
)

// Session is a login of a browser, as its file records it.
type Session struct {
	ID         string `json:"id"`
	Browser    string `json:"browser"`
	Address    string `json:"address"` // from which it logged in
	CreatedAt  string `json:"created_at"`
	LastUsedAt string `json:"last_used_at"` // to the minute
	ExpiresAt  string `json:"expires_at"`
}

// SessionError reports a session that cannot be named.
type SessionError struct{ ID, Why string }

func (e *SessionError) Error() string {
	return fmt.Sprintf("log out session %q: %s; to list them, run: starter console sessions", e.ID, e.Why)
}

const (
	idLength = 12      // hexadecimal digits of the digest of a cookie's id
	maxFile  = 1 << 12 // bytes
	usedStep = time.Minute
)

func sessionFolder(stateDir string) string { return filepath.Join(stateDir, "console", "sessions") }

// idOf is the id of the session of a cookie. It does not disclose the cookie.
func idOf(claims string) string {
	random, _, _ := strings.Cut(claims, ".")
	return digest(random)[:idLength]
}

// record writes the file of a new session, and removes those of expired ones.
func (b *Sessions) record(claims string, r *http.Request) error {
	if err := (durable.Disk{}).Mkdir(b.folder, 0o700); err != nil {
		return err
	}
	now := b.Now()
	if _, err := list(b.folder, now); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	s := Session{ID: idOf(claims), Browser: browserOf(r.UserAgent()), Address: host,
		CreatedAt: stamp(now), ExpiresAt: stamp(now.Add(SessionLife))}
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return durable.Disk{}.WriteFile(filepath.Join(b.folder, s.ID), append(raw, '\n'), 0o600)
}

// valid reports whether the session of a cookie was not revoked.
func (b *Sessions) valid(id string) (bool, error) {
	file := filepath.Join(b.folder, id)
	fi, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if now := b.Now(); now.Sub(fi.ModTime()) > usedStep { // the time is only shown
		if err := os.Chtimes(file, now, now); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
	}
	return true, nil
}

// List returns the sessions of a state directory, the one that was used last first.
func List(stateDir string, now time.Time) ([]Session, error) {
	all, err := list(sessionFolder(stateDir), now)
	if err != nil {
		return nil, fmt.Errorf("list the sessions of the console: %w", err)
	}
	return all, nil
}

// list returns the sessions in a folder, and removes expired ones.
func list(folder string, now time.Time) ([]Session, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return []Session{}, nil
	}
	if err != nil {
		return nil, err
	}
	all := []Session{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !sessionID.MatchString(e.Name()) {
			continue // another program removed it, or is writing it
		}
		s := Session{}
		raw, err := regular.ReadFile(filepath.Join(folder, e.Name()), maxFile)
		if err == nil {
			err = json.Unmarshal(raw, &s)
		}
		if err != nil { // its cookie is valid as long as the file is there
			s = Session{Browser: "not recorded: the file is damaged"}
		}
		s.ID, s.LastUsedAt = e.Name(), stamp(info.ModTime())
		until, err := time.Parse(time.RFC3339, s.ExpiresAt)
		if err == nil && !now.Before(until) {
			if err := remove(folder, s.ID); err != nil {
				return nil, err
			}
			continue
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y Session) int {
		return cmp.Or(cmp.Compare(y.LastUsedAt, x.LastUsedAt), cmp.Compare(x.ID, y.ID))
	})
	return all, nil
}

var sessionID = regexp.MustCompile(fmt.Sprintf("^[0-9a-f]{%d}$", idLength))

// Revoke ends a session, which its id or the beginning of one names, and returns it. A running console refuses it from
// then on.
func Revoke(stateDir, id string, now time.Time) (Session, error) {
	all, err := List(stateDir, now)
	if err != nil {
		return Session{}, err
	}
	all = slices.DeleteFunc(all, func(s Session) bool { return id == "" || !strings.HasPrefix(s.ID, id) })
	switch len(all) {
	case 0:
		return Session{}, &SessionError{id, "there is no such session"}
	case 1:
		return all[0], remove(sessionFolder(stateDir), all[0].ID)
	}
	return Session{}, &SessionError{id, "several sessions begin with it"}
}

func remove(folder, id string) error {
	err := durable.Disk{}.Remove(filepath.Join(folder, id))
	if errors.Is(err, fs.ErrNotExist) { // another program was faster
		return nil
	}
	if err != nil {
		return err
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close()) // it must not come back after a power failure
}

// End ends the session of a request.
func (b *Sessions) End(r *http.Request) error {
	s, ok, err := b.Session(r)
	if err != nil || !ok {
		return err
	}
	return remove(b.folder, s.ID)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// browserOf names a browser and its system in a few words.
func browserOf(agent string) string {
	named := func(names ...string) string {
		for _, name := range names {
			word, shown, _ := strings.Cut(name, "=")
			if strings.Contains(agent, word) {
				return cmp.Or(shown, strings.TrimSuffix(word, "/"))
			}
		}
		return ""
	}
	browser := named("Firefox/", "Edg/=Edge", "OPR/=Opera", "HeadlessChrome/=Chrome", "Chrome/", "Safari/")
	system := named("Android", "iPhone", "iPad", "Windows", "Mac OS X=macOS", "CrOS=ChromeOS", "Linux")
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser+system != "":
		return browser + system
	}
	return "another program"
}
