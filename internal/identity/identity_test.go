package identity

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
)

func own(t *testing.T, state string) Own {
	t.Helper()
	o, err := Load(state)
	require.NoError(t, err)
	return o
}

func TestOwnSignaturesAreTrusted(t *testing.T) {
	state := t.TempDir()
	o := own(t, state)
	require.Equal(t, o.Public(), own(t, state).Public())
	fi, err := os.Stat(filepath.Join(state, File))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
	trusted, err := Trust(config.Settings{StateDir: state})
	require.NoError(t, err)
	auth, refused := trusted.Verify([]byte("text"), o.Sign([]byte("text")))
	require.Empty(t, refused)
	require.Equal(t, "key "+o.Name, auth)
}

func TestVerifyRefuses(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	o, other := own(t, here), own(t, there)
	allow, err := Trust(config.Settings{StateDir: here, Decide: config.Decide{Unsigned: config.Allow}})
	require.NoError(t, err)
	deny, err := Trust(config.Settings{StateDir: here, Decide: config.Decide{Unsigned: config.Deny}})
	require.NoError(t, err)
	stolen := o.Sign([]byte("another text"))
	for _, row := range []struct {
		name    string
		by      *Trusted
		sig     *contract.Signature
		message string
	}{
		{"unsigned, allowed", allow, nil, ""},
		{"unsigned, denied", deny, nil, "it is not signed, and decide.unsigned is deny"},
		{"another text", allow, stolen, "does not match: the message was changed"},
		{"unknown key", allow, other.Sign([]byte("text")), "is not among decide.identities of the worker"},
		{"key of another signature", allow, &contract.Signature{Key: o.Public(), Value: other.Sign([]byte("text")).Value},
			"does not match"},
		{"no Base64", allow, &contract.Signature{Key: o.Public(), Value: "?"}, "does not match"},
		{"empty", allow, &contract.Signature{}, "is not among decide.identities"},
	} {
		t.Run(row.name, func(t *testing.T) {
			auth, refused := row.by.Verify([]byte("text"), row.sig)
			require.Equal(t, contract.AuthNone, auth)
			if row.message == "" {
				require.Empty(t, refused)
			} else {
				require.Contains(t, refused, row.message)
			}
		})
	}
}

func TestIdentitiesOfTheSettingsAreTrusted(t *testing.T) {
	there := own(t, t.TempDir())
	s := config.Settings{StateDir: t.TempDir(), Decide: config.Decide{Identities: []string{"ada=" + there.Public()}}}
	trusted, err := Trust(s)
	require.NoError(t, err)
	auth, refused := trusted.Verify([]byte("text"), there.Sign([]byte("text")))
	require.Empty(t, refused)
	require.Equal(t, "key ada", auth)

	s.Decide.Identities = []string{"ada", "bob=short", "=" + there.Public()}
	_, err = Trust(s)
	var key *KeyError
	require.ErrorAs(t, err, &key)
	for _, entry := range s.Decide.Identities {
		require.ErrorContains(t, err, entry)
	}
}

func TestUnusableKeysAreRefused(t *testing.T) {
	state := t.TempDir()
	own(t, state)
	require.NoError(t, os.Chmod(filepath.Join(state, File), 0o604))
	_, err := Load(state)
	require.ErrorContains(t, err, "(mode 0604): remove it to create another key")
}
