package cli

// EndStale ends one turn with the cause ErrStale; false if it does not run. It does not wait.
func (r *Registry) EndStale(turn TurnID) bool {
	return len(r.end(ErrStale, func(i RunInfo) bool { return i.Turn == turn })) > 0
}
