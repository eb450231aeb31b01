package bot

import (
	"context"

	"ductor/bot/agent"
	"ductor/bot/changes"
	"ductor/bot/checks"
	"ductor/bot/consult"
	"ductor/bot/cron"
	"ductor/bot/display"
	"ductor/bot/files"
	"ductor/bot/menu"
	"ductor/bot/message"
	"ductor/bot/project"
	"ductor/bot/sessions"
	"ductor/bot/tables"
	"ductor/bot/usage"
	"ductor/bot/users"
	"ductor/orchestrator"
)

// books are what the screens show.
type books struct {
	jobs     orchestrator.Jobs // nil: none are kept
	sessions orchestrator.Sessions
	away     sessions.Away // nil: terminals do not ask here
	files    *files.Sender // nil: there are none
	projects orchestrator.Projects
	topics   *topicOpener
	changes  orchestrator.FileChanges // nil: nothing is kept of changes
	spool    *message.Spool           // of pictures; nil: there are none
	answers
	owners
	usage    usage.Store
	consults orchestrator.Consults
}

// owners is what stands behind the commands of owners.
type owners struct {
	users  users.Directory // nil: all are in the configuration
	checks checks.Examiner // nil: there are none
	reload Reload          // nil: there is nothing to reload
}

// answers is what stands behind the buttons of answers.
type answers struct {
	steps   orchestrator.Steps
	tables  *tables.Screen
	display *display.Screen
}

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
