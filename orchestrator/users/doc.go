// Package users provides the users of ductor: the users in the configuration, and the users who accepted an owner's
// invitation. It creates invitations and checks their codes.
//
// It does NOT define the rights of roles; orchestrator.UserRole does. It handles no Telegram messages.
package users
