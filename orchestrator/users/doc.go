// Package users knows who may use ductor: the users of the configuration, and those who accepted an owner's invitation.
// It creates invitations and checks their codes.
//
// It does NOT define the rights of roles; orchestrator.UserRole does. It handles no Telegram messages.
package users
