// Package links makes and reads the links in notices, with which their readers answer one question of a run without a
// terminal and without a login.
//
// A link names a run, a question, the receiver of the notice and the time of its end, and is signed (HMAC-SHA-256). A
// question has another id when it is asked again or when its subject changes, so a link never answers another question.
package links

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/keyfile"
)

// Path is where the console serves links: Path + the text of a link.
const Path = "/q/"

// Errors of [Maker.Read].
var (
	ErrInvalid = errors.New("the link is not valid: it was cut or changed, or another installation made it")
	ErrExpired = errors.New("the link has expired")
)

// Link is what a link is about.
type Link struct {
	Run      string    `json:"r"`
	Question string    `json:"q"`
	Receiver string    `json:"n"` // of the notice
	Expires  time.Time `json:"e"`
}

// Maker makes and reads links.
type Maker struct {
	key  []byte
	base string        // URL of the console, without a slash at its end
	life time.Duration // of a link
	now  func() time.Time
}

// File is the key of the host in the state directory. A console accepts the links of every worker with its key.
const File = "links.key"

// KeyError reports a key that cannot be used. It does not contain the key.
type KeyError struct{ Cause error }

func (e *KeyError) Error() string { return "read the key for links: " + e.Cause.Error() }

func (e *KeyError) Unwrap() error { return e.Cause }

// Load returns the maker of the settings. Its key is that of console.link_key_file, or the host's, which the first call
// creates.
func Load(s config.Settings) (*Maker, error) {
	m := &Maker{base: strings.TrimSuffix(s.Console.URL, "/"), life: s.Console.LinkExpires, now: time.Now}
	var err error
	if shared := s.Console.LinkKeyFile; shared != "" {
		m.key, err = keyfile.File{Path: shared, Replace: "copy " + File + " from the state directory of another host"}.Read()
	} else {
		m.key, err = keyfile.File{Path: filepath.Join(s.StateDir, File), Replace: "remove it to create another key"}.Load()
	}
	if err != nil {
		return nil, &KeyError{err}
	}
	return m, nil
}

// Page returns the address of a run's page, for which a login is needed; empty if the settings name no console.
func (m *Maker) Page(run string) string {
	if m.base == "" {
		return ""
	}
	return m.base + "/runs/" + url.PathEscape(run)
}

// Answer returns a link that answers a question; empty if the settings name no console. It ends after the time of the
// settings, and not after the question does.
func (m *Maker) Answer(run, question, receiver string, ends time.Time) (string, error) {
	if m.base == "" {
		return "", nil
	}
	l := Link{Run: run, Question: question, Receiver: receiver, Expires: m.now().Add(m.life).UTC().Truncate(time.Second)}
	if !ends.IsZero() && ends.Before(l.Expires) {
		l.Expires = ends.UTC()
	}
	text, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("make a link: %w", err)
	}
	encoded := base64.RawURLEncoding.EncodeToString(text)
	return m.base + Path + encoded + "." + m.sign(encoded), nil
}

// Read returns the content of the text of a link, also if it has expired.
func (m *Maker) Read(text string) (Link, error) {
	var l Link
	encoded, mac, _ := strings.Cut(text, ".")
	if !hmac.Equal([]byte(mac), []byte(m.sign(encoded))) {
		return l, ErrInvalid
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	if err != nil {
		return l, ErrInvalid
	}
	if !m.now().Before(l.Expires) {
		return l, ErrExpired
	}
	return l, nil
}

func (m *Maker) sign(encoded string) string {
	mac := hmac.New(sha256.New, m.key)
	mac.Write([]byte(encoded))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
