package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
)

// A starter replaces a background worker that has other settings of these kinds.
func TestSettingsThatAWorkerReadsOnce(t *testing.T) {
	seen := map[string]bool{settingsID(config.Settings{}): true}
	for name, change := range map[string]func(*config.Settings){
		"redact":        func(s *config.Settings) { s.Redact.Env = []string{"MY_VALUE"} },
		"codec":         func(s *config.Settings) { s.Codec.Key = "2026" },
		"key of links":  func(s *config.Settings) { s.Console.LinkKeyFile = "/keys/links" },
		"stores":        func(s *config.Settings) { s.Policy.Stores = []string{"s3://b"} },
		"roots":         func(s *config.Settings) { s.Policy.Roots = []string{"/runs"} },
		"sandbox":       func(s *config.Settings) { s.Sandbox.Mode = "strict" },
		"prices":        func(s *config.Settings) { s.Prices = []string{"own-1 1 2"} },
		"visible paths": func(s *config.Settings) { s.Sandbox.Read = []string{"/data"} },
	} {
		var s config.Settings
		require.Equal(t, settingsID(s), settingsID(config.Settings{}))
		change(&s)
		require.False(t, seen[settingsID(s)], name)
		seen[settingsID(s)] = true
	}
}
