package adapter

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDefinitionsUseTheTable compares the schema and the guide of definitions with the table.
func TestDefinitionsUseTheTable(t *testing.T) {
	raw, err := os.ReadFile("../../pipeline/definition.schema.json")
	require.NoError(t, err)
	var schema struct {
		Defs struct {
			Agent struct {
				Then struct {
					Properties struct {
						Reply struct {
							Enum []string `json:"enum"`
						} `json:"reply"`
					} `json:"properties"`
				} `json:"then"`
			} `json:"Agent"`
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(raw, &schema))
	require.Equal(t, Names(), schema.Defs.Agent.Then.Properties.Reply.Enum)

	guide, err := os.ReadFile("../../docs/pipelines.md")
	require.NoError(t, err)
	reports := map[CostSource]string{ReportsUSD: "tokens and USD", ReportsTokens: "tokens", ReportsNone: "nothing"}
	rows := "| `reply` | command | reports |\n|---|---|---|\n"
	for _, a := range Table() {
		command := "any"
		if a.Command != "" {
			command = "`" + a.Command + "`"
		}
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", a.Name, command, reports[a.Cost])
	}
	require.Contains(t, string(guide), rows)
}
