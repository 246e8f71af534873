package operations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/redact"
)

func TestOutputOfGateIsRedactedBeforeItIsCut(t *testing.T) {
	secret := strings.Repeat("s3cr3t-", 6)
	secrets, err := redact.New(redact.Options{
		Environ: []string{"DEPLOY_TOKEN=" + secret}, Names: []string{"DEPLOY_TOKEN"},
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "stdout")
	require.NoError(t, os.WriteFile(file, []byte(secret+strings.Repeat("x", maxGateOutput-20)), 0o600))
	require.NotContains(t, lastOutput(secrets, file), "s3cr3t")
}
