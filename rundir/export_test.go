package rundir

// Codes lists every code, in the order in which findings are shown.
func Codes() (all []Code) {
	for _, r := range rules {
		all = append(all, r.code)
	}
	return all
}
