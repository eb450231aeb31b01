package bot

import (
	"context"

	"ductor/bot/agent"
	"ductor/bot/changes"
	"ductor/bot/checks"
	"ductor/bot/consult"
	"ductor/bot/cron"
	"ductor/bot/files"
	"ductor/bot/menu"
	"ductor/bot/project"
	"ductor/bot/sessions"
	"ductor/bot/usage"
	"ductor/bot/users"
	"ductor/orchestrator"
)

// pages are the screens that commands lead to.
type pages struct {
	menus    *menu.Menus
	jobs     *cron.Screen
	sessions *sessions.Screen
	files    *files.Screen // nil: there are none
	projects *project.Screen
	agent    *agent.Screen
	changes  *changes.Screen
	usage    *usage.Screen
	users    *users.Screen
	consults *consult.Screen
	checks   *checks.Screen
	reload   Reload // nil: there is nothing to reload
}

// Reload has the configuration read again, and gives what came of it in the language of the conversation.
type Reload func(ctx context.Context, in orchestrator.ConversationID) string
