package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/workflows"
)

// EnsureAttributes creates the search attributes of runs in a namespace and waits until a run can set them. If this
// client may not change the namespace, the error contains the server's refusal and the command for an administrator;
// runs work without the attributes. If this client may not even list them, as on Temporal Cloud, a query finds out
// whether they exist.
func EnsureAttributes(ctx context.Context, c client.Client, namespace string) error {
	list := &operatorservice.ListSearchAttributesRequest{Namespace: namespace}
	known, err := c.OperatorService().ListSearchAttributes(ctx, list)
	if err != nil {
		return queryAttributes(ctx, c, namespace,
			fmt.Errorf("list the search attributes of namespace %s: %w", namespace, err))
	}
	missing := map[string]enumspb.IndexedValueType{}
	for name, kind := range workflows.SearchAttributes() {
		switch have, exists := known.CustomAttributes[name]; {
		case !exists:
			missing[name] = kind
		case have != kind:
			return fmt.Errorf("search attribute %s of namespace %s is %s, not %s: remove it (temporal operator "+
				"search-attribute "+
				"remove --name %s)", name, namespace, have, kind, name)
		}
	}
	if len(missing) > 0 {
		req := &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: missing}
		if _, err := c.OperatorService().AddSearchAttributes(ctx, req); err != nil {
			return byHand(namespace, missing, fmt.Errorf("add search attributes to namespace %s: %w", namespace, err))
		}
	}
	return awaitAttributes(ctx, c, namespace)
}

// queryAttributes filters by the search attributes on a server that refused to list them; denied is the refusal.
func queryAttributes(ctx context.Context, c client.Client, namespace string, denied error) error {
	if err := countByAttributes(ctx, c, namespace); err != nil {
		return byHand(namespace, workflows.SearchAttributes(), fmt.Errorf("%w; filter by them: %w", denied, err))
	}
	return nil
}

// byHand adds the command for an administrator to an error.
func byHand(namespace string, missing map[string]enumspb.IndexedValueType, err error) error {
	return fmt.Errorf("%w. Create them once with an administrator's credentials: `%s`; on Temporal Cloud: `%s`",
		err, CreateAttributes(namespace, "", missing), createOnCloud(namespace, missing))
}

// CreateAttributes returns the command that creates search attributes. An empty address means the server that the
// environment configures.
func CreateAttributes(namespace, address string, missing map[string]enumspb.IndexedValueType) string {
	words := []string{"temporal operator search-attribute create -n", namespace}
	if address != "" {
		words = append(words, "--address", address)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		words = append(words, "--name", name, "--type", missing[name].String())
	}
	return strings.Join(words, " ")
}

func createOnCloud(namespace string, missing map[string]enumspb.IndexedValueType) string {
	words := []string{"tcld namespace search-attributes add --namespace", namespace}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		words = append(words, "--sa", name+"="+missing[name].String())
	}
	return strings.Join(words, " ")
}

// awaitAttributes queries until all parts of the server accept the attributes: each caches the list.
func awaitAttributes(ctx context.Context, c client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := countByAttributes(ctx, c, namespace)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the search attributes of namespace %s: %w", namespace, err)
		case <-tick.C:
		}
	}
}

func countByAttributes(ctx context.Context, c client.Client, namespace string) error {
	req := &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace,
		Query: workflows.SearchAttributesQuery()}
	_, err := c.CountWorkflow(ctx, req)
	return err
}
