package codec

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/config"
)

// keyOf is a key that is all of one letter.
func keyOf(letter string) []byte { return []byte(strings.Repeat(letter, 32)) }

func codecOf(t *testing.T, current string, keys map[string][]byte) *Codec {
	t.Helper()
	c, err := New(current, keys)
	require.NoError(t, err)
	return c
}

func payload(t *testing.T, conv converter.DataConverter, value any) *commonpb.Payload {
	t.Helper()
	p, err := conv.ToPayload(value)
	require.NoError(t, err)
	return p
}

func TestDecryptWithKey(t *testing.T) {
	old := codecOf(t, "old", map[string][]byte{"old": keyOf("a")})
	p := payload(t, old.Converter(), map[string]string{"task": "open sesame"})
	require.Equal(t, "binary/encrypted", string(p.Metadata["encoding"]))
	require.Equal(t, "old", string(p.Metadata["encryption-key-id"]))
	require.NotContains(t, p.String(), "sesame")
	require.NotEqual(t, p.Data, payload(t, old.Converter(), map[string]string{"task": "open sesame"}).Data,
		"equal values do not look equal")

	rotated := codecOf(t, "new", map[string][]byte{"old": keyOf("a"), "new": keyOf("b")})
	var got map[string]string
	require.NoError(t, rotated.Converter().FromPayload(p, &got), "a retired key still reads")
	require.Equal(t, map[string]string{"task": "open sesame"}, got)
	require.Equal(t, "new", string(payload(t, rotated.Converter(), 1).Metadata["encryption-key-id"]))
	reading := codecOf(t, "", map[string][]byte{"old": keyOf("a")})
	require.NoError(t, reading.Converter().FromPayload(p, &got), "also where encryption is off")
	require.False(t, reading.Encrypts())
}

func TestPlainPayloadIsUnchanged(t *testing.T) {
	plain := payload(t, converter.GetDefaultDataConverter(), "as it is")
	c := codecOf(t, "k", map[string][]byte{"k": keyOf("a")})
	var got string
	require.NoError(t, c.Converter().FromPayload(plain, &got))
	require.Equal(t, "as it is", got)
	none := codecOf(t, "", nil)
	require.Equal(t, plain.String(), payload(t, none.Converter(), "as it is").String())
}

func TestKeyErrorNamesKey(t *testing.T) {
	p := payload(t, codecOf(t, "old", map[string][]byte{"old": keyOf("a")}).Converter(), "x")
	cut := payload(t, codecOf(t, "old", map[string][]byte{"old": keyOf("a")}).Converter(), "x")
	cut.Data = cut.Data[:5]
	changed := payload(t, codecOf(t, "old", map[string][]byte{"old": keyOf("a")}).Converter(), "x")
	changed.Data[len(changed.Data)-1] ^= 1
	renamed := payload(t, codecOf(t, "old", map[string][]byte{"old": keyOf("a")}).Converter(), "x")
	renamed.Metadata[metaKey] = []byte("same")
	wrong := func(id string) string {
		return fmt.Sprintf("key %q in codec.keys is not the one that encrypted it, or the payload was changed; "+
			"restore the old key, and use another id for a new key", id)
	}
	for _, row := range []struct {
		name string
		p    *commonpb.Payload
		keys map[string][]byte
		want KeyError
		text string
	}{
		{"no key", p, nil, KeyError{ID: "old"}, `key "old" is not in codec.keys (none); add it: a retired key is ` +
			"needed as long as its runs are read"},
		{"another id", p, map[string][]byte{"new": keyOf("a")}, KeyError{ID: "old", Known: []string{"new"}},
			`key "old" is not in codec.keys (new); add it: a retired key is needed as long as its runs are read`},
		{"another key", p, map[string][]byte{"old": keyOf("b")}, KeyError{ID: "old", Wrong: true}, wrong("old")},
		{"cut off", cut, map[string][]byte{"old": keyOf("a")}, KeyError{ID: "old", Wrong: true}, wrong("old")},
		{"changed", changed, map[string][]byte{"old": keyOf("a")}, KeyError{ID: "old", Wrong: true}, wrong("old")},
		{"under another id", renamed, map[string][]byte{"old": keyOf("a"), "same": keyOf("a")},
			KeyError{ID: "same", Wrong: true}, wrong("same")},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got string
			err := codecOf(t, "", row.keys).Converter().FromPayload(row.p, &got)
			var key *KeyError
			require.ErrorAs(t, err, &key)
			require.Equal(t, row.want.ID, key.ID)
			require.Equal(t, row.want.Wrong, key.Wrong)
			require.ElementsMatch(t, row.want.Known, key.Known)
			require.EqualError(t, key, "decrypt a payload: "+row.text)
		})
	}
}

func TestFailuresAreEncrypted(t *testing.T) {
	c := codecOf(t, "k", map[string][]byte{"k": keyOf("a")})
	f := c.Failures().ErrorToFailure(temporal.NewApplicationError("open sesame", "Odd", "sesame in details"))
	require.NotContains(t, f.String(), "sesame")
	var failure *temporal.ApplicationError
	require.ErrorAs(t, c.Failures().FailureToError(f), &failure)
	require.Equal(t, "open sesame", failure.Message())
	none := codecOf(t, "", nil)
	require.Contains(t, none.Failures().ErrorToFailure(errors.New("open sesame")).String(), "sesame")
	require.ErrorAs(t, codecOf(t, "", map[string][]byte{"k": keyOf("a")}).Failures().FailureToError(f), &failure)
	require.Equal(t, "open sesame", failure.Message())
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	text := base64.StdEncoding.EncodeToString(keyOf("a"))
	require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
	getenv := func(name string) string {
		return map[string]string{
			"GOOD": text, "SHORT": base64.StdEncoding.EncodeToString([]byte("short")), "ODD": "no base64!",
		}[name]
	}
	c, err := Load(config.Codec{Key: "e", Keys: config.Words{"e=env:GOOD", "f=file:" + file}}, getenv)
	require.NoError(t, err)
	sealed, err := c.Encode([]*commonpb.Payload{{Data: []byte("x")}})
	require.NoError(t, err)
	require.Equal(t, "e", string(sealed[0].Metadata[metaKey]))
	open, err := Load(config.Codec{Keys: config.Words{"e=file:" + file}}, getenv)
	require.NoError(t, err)
	plain, err := open.Decode(sealed)
	require.NoError(t, err, "file and variable hold the same key")
	require.True(t, bytes.Equal([]byte("x"), plain[0].Data))

	for name, row := range map[string]struct {
		codec   config.Codec
		message string
	}{
		"unset variable":  {config.Codec{Keys: config.Words{"k=env:NONE"}}, `key "k": variable NONE is not set`},
		"no file":         {config.Codec{Keys: config.Words{"k=file:" + dir + "/none"}}, "no such file"},
		"too short":       {config.Codec{Keys: config.Words{"k=env:SHORT"}}, "it has 5 bytes; AES-256 needs 32"},
		"no base64":       {config.Codec{Keys: config.Words{"k=env:ODD"}}, "not base64"},
		"in the settings": {config.Codec{Keys: config.Words{"k=" + text}}, "settings must not contain the secret"},
		"twice":           {config.Codec{Keys: config.Words{"k=env:GOOD", "k=env:GOOD"}}, `duplicate key "k"`},
		"no id":           {config.Codec{Keys: config.Words{"env:GOOD"}}, "want id=env:NAME"},
		"none that encrypts": {
			config.Codec{Key: "k", Keys: config.Words{"e=env:GOOD"}},
			`current key "k" is not among the keys (e)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(row.codec, getenv)
			require.ErrorContains(t, err, row.message)
			require.NotContains(t, err.Error(), text)
			require.NotContains(t, err.Error(), "no base64!")
		})
	}
}

func FuzzDecode(f *testing.F) {
	c, err := New("k", map[string][]byte{"k": keyOf("a")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("binary/encrypted"), []byte("k"), []byte("0123456789abcdef0123456789abcdef"))
	f.Fuzz(func(t *testing.T, encoding, id, data []byte) {
		got, err := c.Decode(
			[]*commonpb.Payload{{Metadata: map[string][]byte{"encoding": encoding, metaKey: id}, Data: data}},
		)
		if string(encoding) == Encoding {
			require.Error(t, err, "it was not encrypted")
			return
		}
		require.NoError(t, err)
		require.Equal(t, data, got[0].Data)
	})
}
