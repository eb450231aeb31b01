package app

import (
	"testing"

	"ductor/internal/config"
	"ductor/orchestrator"
)

// What waits runs only if its user could still send it.
func TestWhichWaitingTurnsMayStart(t *testing.T) {
	const bob, group, moved = 2, -5, -1000000000005
	for _, c := range []struct {
		role    orchestrator.UserRole
		in      int64
		of      orchestrator.RightsOf
		job     orchestrator.JobID
		groups  []int64
		members string
		want    bool
	}{
		{orchestrator.RoleUser, bob, orchestrator.RightsOfChat, "", nil, "", true},
		{orchestrator.RoleViewer, bob, orchestrator.RightsOfChat, "", nil, "", false},
		{orchestrator.RoleNone, bob, orchestrator.RightsOfChat, "", nil, "", false},
		{orchestrator.RoleNone, bob, orchestrator.RightsOfPress, "", nil, "", false},
		{orchestrator.RoleUser, bob, orchestrator.RightsOfJob, "j1", nil, "", true},
		{orchestrator.RoleViewer, bob, orchestrator.RightsOfJob, "j1", nil, "", false},
		{orchestrator.RoleViewer, bob, orchestrator.RightsOfJob, orchestrator.ConfiguredJob(orchestrator.JobScheduled, "x"),
			nil, "", true},
		{orchestrator.RoleViewer, bob, orchestrator.RightsOfJob, orchestrator.ConfiguredJob(orchestrator.JobHook, "x"),
			nil, "", true},
		{orchestrator.RoleNone, bob, orchestrator.RightsOfJob, orchestrator.ConfiguredJob(orchestrator.JobHook, "x"),
			nil, "", false},
		{orchestrator.RoleNone, bob, orchestrator.RightsOfJob, "", nil, "", false},
		{orchestrator.RoleUser, group, orchestrator.RightsOfChat, "", nil, "", true},
		{orchestrator.RoleNone, group, orchestrator.RightsOfChat, "", []int64{group}, "all", false},
		{orchestrator.RoleNone, group, orchestrator.RightsOfMember, "", []int64{group}, "all", true},
		{orchestrator.RoleNone, group, orchestrator.RightsOfMember, "", []int64{group}, "listed", false},
		{orchestrator.RoleViewer, group, orchestrator.RightsOfMember, "", []int64{group}, "all", false},
		{orchestrator.RoleUser, group, orchestrator.RightsOfJob, "j1", []int64{group}, "", true},
		{orchestrator.RoleNone, group, orchestrator.RightsOfJob, "j1", []int64{group}, "", false},
		{orchestrator.RoleViewer, group, orchestrator.RightsOfJob, "j1", []int64{group}, "", false},
		{orchestrator.RoleNone, group, orchestrator.RightsOfJob, "config/x", []int64{group}, "", true},
		{orchestrator.RoleUser, group, orchestrator.RightsOfJob, "", nil, "", false},
		{orchestrator.RoleUser, group, orchestrator.RightsOfPress, "", []int64{group}, "", true},
		{orchestrator.RoleUser, group, orchestrator.RightsOfPress, "", nil, "", false},
		{orchestrator.RoleUser, moved, orchestrator.RightsOfJob, "j1", []int64{group}, "", true},
		{orchestrator.RoleUser, moved, orchestrator.RightsOfJob, "j1", []int64{moved}, "", true},
		{orchestrator.RoleUser, moved, orchestrator.RightsOfJob, "j1", []int64{-6}, "", false},
		{orchestrator.RoleUser, moved, orchestrator.RightsOfPress, "", []int64{group}, "", true},
		{orchestrator.RoleUser, group, orchestrator.RightsOfJob, "later-1", []int64{group}, "", true},
		{orchestrator.RoleNone, group, orchestrator.RightsOfJob, "later-1", []int64{group}, "", false},
		{orchestrator.RoleViewer, bob, orchestrator.RightsOfJob, "later-1", nil, "", false},
	} {
		cfg := config.Default()
		cfg.Telegram.AllowedGroups = c.groups
		cfg.Telegram.GroupMembers = "listed"
		if c.members == "all" {
			cfg.Telegram.GroupMembers = "all"
		}
		roles := orchestrator.Roster{bob: c.role}
		turn := orchestrator.Turn{Prompt: orchestrator.Prompt{Conversation: orchestrator.ConversationID{Chat: c.in},
			Person: bob, Rights: orchestrator.Rights{Of: c.of}}}
		turn.Wants.Job = c.job
		former := func(chat int64) int64 { return map[int64]int64{moved: group}[chat] }
		if got := permits(cfg, roles.RoleOf, former, turn); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
