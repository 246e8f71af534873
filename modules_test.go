package passbook_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var required = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)

// TestModulesHaveOneVersion: packages that both the program and the embedded server import are compiled once, which is a
// fifth of the time from a checkout to the first demo.
func TestModulesHaveOneVersion(t *testing.T) {
	server := map[string]string{}
	for _, m := range required.FindAllStringSubmatch(read(t, "devserver/go.mod"), -1) {
		server[m[1]] = m[2]
	}
	shared := 0
	for _, m := range required.FindAllStringSubmatch(read(t, "go.mod"), -1) {
		if version, ok := server[m[1]]; ok {
			shared++
			require.Equal(t, m[2], version, "%s in devserver/go.mod: raise the lower version", m[1])
		}
	}
	require.Greater(t, shared, 40)
}
