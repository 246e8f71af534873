package pipeline_test

import (
	"fmt"
	"log"
	"testing/fstest"

	"github.com/passbook-run/passbook/pipeline"
)

// Check a definition and expand it into a plan.
func ExampleParse() {
	folder := fstest.MapFS{"review.md": {Data: []byte("Review the change.")}}
	source := []byte(`pipeline: review
agent: {run: [claude, -p, --output-format, json], reply: claude-json}
roles:
  reviewer: {prompt: review.md, gives: report}
stages:
  - name: review
    steps: [{role: reviewer}]
`)
	definition, problems := pipeline.Parse("pipeline.yaml", source, folder)
	if len(problems) > 0 {
		log.Fatal(problems)
	}
	plan := pipeline.Expand(definition)
	fmt.Println(plan.Pipeline, "has", len(plan.Stages), "stage")
	fmt.Println("programs:", plan.Programs())
	// Output:
	// review has 1 stage
	// programs: [claude]
}

// All problems of a definition are reported at once, each with file and line.
func ExampleProblems() {
	_, problems := pipeline.Parse("pipeline.yaml", []byte(`pipeline: review
agent: {run: [claude, -p], reply: text}
roles: {reviewer: {prompt: review.md, gives: report}}
stages:
  - name: review
    steps: [{role: reveiwer}]
budgt: {usd: 5}
`), fstest.MapFS{})
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// pipeline.yaml:3:28: roles.reviewer.prompt names review.md, and there is no such file; create it or correct the path
	// pipeline.yaml:6:13: role "reveiwer" is not one of roles; did you mean "reviewer"?
	// pipeline.yaml:7:1: unknown key "budgt" in the pipeline; did you mean "budget"?
}
