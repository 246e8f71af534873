package clouds_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	_ "github.com/passbook-run/passbook/internal/store/clouds"
)

// TestCloudSchemesAreKnown: opening does not connect; it finds the driver and reads the URL.
func TestCloudSchemesAreKnown(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "example")
	t.Setenv("AZURE_STORAGE_KEY", "ZXhhbXBsZQ==")
	for _, url := range []string{"s3://bucket?region=eu-central-1", "gs://bucket?anonymous=true",
		"azblob://container"} {
		s, err := store.Open(t.Context(), url)
		require.NoError(t, err, url)
		require.NoError(t, s.Close())
	}
}
