package run

// resumedProjects are the commands that resume the paused projects of a run, which waits for them.
func resumedProjects(at Situation) (next []Command) {
	for _, alias := range at.Paused {
		next = append(next, Command{Steps: [][]string{{"resume", at.Dir + "/" + alias}}})
	}
	return next
}

// blockedProjects are the commands that let the projects continue which block a run. The run continues when they do.
func blockedProjects(s State, dir string) (next []Command) {
	if q, _ := s.Asks(); q.Trigger != TriggerBlocked {
		return nil
	}
	for _, p := range s.Projects {
		at := dir + "/" + p.Alias
		switch p.Outcome {
		case ProjectHalted, ProjectRejected:
			next = append(next, Command{Steps: forced(Resume, "", at).Steps})
		case ProjectFailed, ProjectCancelled, ProjectInterrupted:
			next = append(next, Command{Steps: [][]string{{"resume", at}}})
		case ProjectMissing, ProjectUnreadable:
			again := []string{"decide", dir, "--action", ActionRetry}
			next = append(next, Command{Steps: [][]string{{"repair-state", at, "--apply"}, again}})
		}
	}
	return next
}
