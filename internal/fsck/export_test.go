package fsck

// Codes returns every code that a check knows with its severity, for tests.
func Codes() []Issue {
	var all []Issue
	for _, r := range rules() {
		all = append(all, Issue{Code: r.code, Severity: r.severity, Hint: r.hint})
	}
	return all
}
