package access_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
)

func TestRequestsCarryTheirIdentity(t *testing.T) {
	ctx := t.Context()
	_, known := access.From(ctx)
	require.False(t, known)
	require.Empty(t, access.CSRF(ctx))
	ada := access.Identity{Name: "ada", Can: api.CanDecide}
	id, known := access.From(access.WithCSRF(access.With(ctx, ada), "t"))
	require.True(t, known)
	require.Equal(t, ada, id)
	require.Equal(t, "t", access.CSRF(access.WithCSRF(ctx, "t")))
}
