package host

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNameOfTheConsole(t *testing.T) {
	for name, row := range map[string]struct {
		found []string
		err   error
		want  CheckState
	}{
		"this machine":    {[]string{"127.0.0.1", "::1"}, nil, OK},
		"another machine": {[]string{"127.0.0.1", "192.0.2.1"}, nil, Warning},
		"no address":      {nil, errors.New("no such host"), Unchecked},
	} {
		t.Run(name, func(t *testing.T) {
			e := &examiner{lookup: func(context.Context, string) ([]string, error) { return row.found, row.err }}
			e.consoleName(t.Context())
			require.Equal(t, row.want, e.report.Checks[0].State)
		})
	}
}
