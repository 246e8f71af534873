package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const shop = `pipeline: shop
projects:
  orders: {source: ../orders, pipeline: a.md, needs: [billing, library]}
  billing: {source: ../billing, pipeline: a.md, needs: [library], task: Charge in cents}
  docs: {source: ../docs, pipeline: a.md}
  library: {source: ../library, pipeline: a.md}
stages:
  - name: contract
    steps: [{run: sh check.sh, if_failing: ask}]
`

// TestPlanOrdersProjectsByNeeds wants every project behind those that it needs, and else the order of the file. A
// definition with projects needs neither agent nor roles.
func TestPlanOrdersProjectsByNeeds(t *testing.T) {
	def, problems := Parse("shop.yaml", []byte(shop), folderFor([]byte("a.md")))
	require.Empty(t, problems)
	var order []string
	for _, p := range Expand(def).Projects {
		order = append(order, p.Alias)
	}
	require.Equal(t, []string{"docs", "library", "billing", "orders"}, order)
	require.Equal(t, Project{Alias: "billing", Source: "../billing", Pipeline: "a.md", Task: "Charge in cents",
		Needs: []string{"library"}}, Expand(def).Projects[2])
}
