package host_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/host"
)

// hosted is a frontend without an operator service that requires an API key, as Temporal Cloud.
type hosted struct {
	frontend
	known bool // the namespace has the search attributes
}

func (h *hosted) CountWorkflowExecutions(context.Context,
	*workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	if !h.known {
		return nil, serviceerror.ToStatus(serviceerror.NewInvalidArgument("invalid search attribute: PassbookCostUSD")).Err()
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

func requireKey(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if md, _ := metadata.FromIncomingContext(ctx); !slices.Equal(md.Get("authorization"), []string{"Bearer sesame"}) {
		return nil, status.Error(codes.Unauthenticated, "Request unauthorized.")
	}
	return next(ctx, req)
}

func TestEnsureAttributesWithoutAnOperatorService(t *testing.T) {
	cert, authority := certificate(t)
	for _, row := range []struct {
		name  string
		known bool
		want  string
	}{
		{"created by an administrator", true, ""},
		{"missing", false,
			"Create them once with an administrator's credentials: `temporal operator search-attribute create -n " +
				"default --name PassbookCostUSD --type Double " +
				"--name PassbookPipeline --type Keyword --name PassbookRFCStatus --type Keyword " +
				"--name PassbookScore --type Double --name PassbookSource " +
				"--type Keyword --name PassbookStage --type Keyword " +
				"--name PassbookStatus --type Keyword --name PassbookThread --type Keyword`; on Temporal Cloud: " +
				"`tcld namespace search-attributes add --namespace default " +
				"--sa PassbookCostUSD=Double --sa PassbookPipeline=Keyword "},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &hosted{known: row.known}
			addr := serving(t, h, grpc.Creds(credentials.NewServerTLSFromCert(&cert)),
				grpc.UnaryInterceptor(requireKey))
			settings(t, map[string]string{"TEMPORAL_ADDRESS": "localhost" + addr[len("127.0.0.1"):],
				"TEMPORAL_API_KEY": "sesame", "TEMPORAL_TLS_SERVER_CA_CERT_PATH": authority})
			conn := must(host.FindConnection(config.Settings{}))(t)
			cl := must(conn.Dial(t.Context(), "", slog.New(slog.DiscardHandler)))(t)
			defer cl.Close()
			err := host.EnsureAttributes(t.Context(), cl, "default")
			if row.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.want)
			}
		})
	}
}
