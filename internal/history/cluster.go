package history

import (
	"context"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
)

// Cluster returns the id of a server: that of the cluster, or that of the namespace if the server does not disclose the
// first, as Temporal Cloud. Both are unique.
func Cluster(ctx context.Context, c client.Client, namespace string) (string, error) {
	info, err := c.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	if Denied(err) {
		return NamespaceID(ctx, c, namespace)
	}
	return info.GetClusterId(), err
}

// NamespaceID returns the id of a namespace.
func NamespaceID(ctx context.Context, c client.Client, namespace string) (string, error) {
	d, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	return d.GetNamespaceInfo().GetId(), err
}

// Denied reports whether a server does not offer a request, at least to this client, as Temporal Cloud does with
// requests about clusters.
func Denied(err error) bool {
	switch serviceerror.ToStatus(err).Code() {
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}
