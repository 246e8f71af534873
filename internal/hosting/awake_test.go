package hosting

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/secrets"
)

func TestSettingDisablesInhibitor(t *testing.T) {
	var o Options
	var err error
	o.Redact, err = secrets.New(config.Settings{}, nil)
	require.NoError(t, err)
	require.Nil(t, o.activities().KeepAwake)
	o.Settings.KeepAwake = true
	require.NotNil(t, o.activities().KeepAwake)
}
