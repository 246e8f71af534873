//go:build ignore

package computeprovider

import "context"

// The server's start mentions these names of Google Cloud Run. The embedded server starts no workers in a cloud.
type (
	// GCPImpersonationChainProvider is never asked.
	GCPImpersonationChainProvider interface {
		ResolveChain(context.Context, ResolveChainInput) ([]string, error)
	}
	// ResolveChainInput is never made.
	ResolveChainInput struct{}
	// NoopGCPImpersonationChainProvider resolves nothing.
	NoopGCPImpersonationChainProvider struct{}
)

// SetGCPImpersonationChainProvider does nothing.
func SetGCPImpersonationChainProvider(GCPImpersonationChainProvider) {}

// ResolveChain returns nothing.
func (NoopGCPImpersonationChainProvider) ResolveChain(context.Context, ResolveChainInput) ([]string, error) {
	return nil, nil
}
