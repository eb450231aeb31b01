package turn

import "ductor/cli"

// Absences contains the owner's MCP servers that the last turn of a conversation did not get, with the reasons.
type Absences map[string]string

// Update records which of the owner's MCP servers are missing in this turn, and why. It returns the servers about which
// the chat must notify the user. These servers were not missing in the previous turn, or were missing for another
// reason.
func (a *Absences) Update(all []cli.AbsentServer) (news []cli.AbsentServer) {
	before, now := *a, Absences{}
	*a = now
	for _, s := range all {
		switch {
		// The turn does not use this server. Remember the old reason, so that a later turn with the same reason does
		// not notify the user again.
		case s.Why == "" && before[s.Name] != "":
			now[s.Name] = before[s.Name]
		case s.Why != "":
			now[s.Name] = s.Why
			if before[s.Name] != s.Why {
				news = append(news, s)
			}
		}
	}
	return news
}
