package links

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
)

var now = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)

func maker(t *testing.T, state string, now time.Time) *Maker {
	t.Helper()
	m, err := Load(config.Settings{StateDir: state, Console: config.Console{URL: "https://passbook.example.org/",
		LinkExpires: 48 * time.Hour}})
	require.NoError(t, err)
	m.now = func() time.Time { return now }
	return m
}

func answer(t *testing.T, m *Maker, ends time.Time) string {
	t.Helper()
	address, err := m.Answer("run-1", "12-abc", "$TEAM", ends)
	require.NoError(t, err)
	text, ok := strings.CutPrefix(address, "https://passbook.example.org/q/")
	require.True(t, ok, address)
	return text
}

func TestReadReturnsWhatWasSigned(t *testing.T) {
	state := t.TempDir()
	m := maker(t, state, now)
	got, err := maker(t, state, now).Read(answer(t, m, time.Time{}))
	require.NoError(t, err)
	require.Equal(t, Link{Run: "run-1", Question: "12-abc", Receiver: "$TEAM", Expires: now.Add(48 * time.Hour)}, got)
	require.Equal(t, "https://passbook.example.org/runs/run-1", m.Page("run-1"))
}

func TestLinksExpire(t *testing.T) {
	state := t.TempDir()
	m := maker(t, state, now)
	for _, c := range []struct {
		ends, at time.Time
		err      error
	}{
		{time.Time{}, now.Add(48*time.Hour - time.Second), nil},
		{time.Time{}, now.Add(48 * time.Hour), ErrExpired},
		{now.Add(time.Hour), now.Add(time.Hour - time.Second), nil},
		{now.Add(time.Hour), now.Add(time.Hour), ErrExpired},
		{now.Add(100 * time.Hour), now.Add(48 * time.Hour), ErrExpired},
	} {
		l, err := maker(t, state, c.at).Read(answer(t, m, c.ends))
		require.Equal(t, c.err, err, "%s", c.at)
		require.Equal(t, "run-1", l.Run, "an expired link names its run")
	}
}

func TestChangedLinksAreInvalid(t *testing.T) {
	m := maker(t, t.TempDir(), now)
	good := answer(t, m, time.Time{})
	encoded, mac, _ := strings.Cut(good, ".")
	other := base64.RawURLEncoding.EncodeToString([]byte(`{"r":"run-2","q":"12-abc","n":"x","e":"2027-01-01T00:00:00Z"}`))
	for name, text := range map[string]string{
		"empty": "", "a dot": ".", "no signature": encoded, "empty signature": encoded + ".", "other run": other + "." + mac,
		"cut": good[:len(good)-1], "longer": good + "A", "key of another host": answer(t, maker(t, t.TempDir(), now),
			time.Time{}),
	} {
		_, err := m.Read(text)
		require.Equal(t, ErrInvalid, err, name)
	}
}

func TestNoConsoleNoLink(t *testing.T) {
	m := maker(t, t.TempDir(), now)
	m.base = ""
	address, err := m.Answer("run-1", "12-abc", "$TEAM", time.Time{})
	require.NoError(t, err)
	require.Empty(t, address+m.Page("run-1"))
}

// TestKeys: hosts share a key, and one that cannot be used is an error that does not contain it.
func TestKeys(t *testing.T) {
	own := config.Settings{StateDir: t.TempDir(), Console: config.Console{URL: "https://passbook.example.org",
		LinkExpires: time.Hour}}
	m, err := Load(own)
	require.NoError(t, err)
	m.now = func() time.Time { return now }
	other := own
	other.StateDir, other.Console.LinkKeyFile = t.TempDir(), filepath.Join(own.StateDir, File)
	shared, err := Load(other)
	require.NoError(t, err)
	shared.now = m.now
	_, err = shared.Read(answer(t, m, time.Time{}))
	require.NoError(t, err)

	require.NoError(t, os.Chmod(filepath.Join(own.StateDir, File), 0o640))
	_, err = Load(own)
	var refused *KeyError
	require.ErrorAs(t, err, &refused)
	require.EqualError(t, refused, "read the key for links: "+filepath.Join(own.StateDir, File)+
		" can be read by other users (mode 0640): remove it to create another key")
	other.Console.LinkKeyFile = filepath.Join(own.StateDir, "none")
	_, err = Load(other)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(other.Console.LinkKeyFile, nil, 0o600))
	_, err = Load(other)
	require.ErrorContains(t, err, "copy links.key from the state directory of another host")
}
