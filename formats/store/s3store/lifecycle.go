package s3store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// Lifecycle is the lifecycle configuration of a bucket, as `aws s3api` reads it.
type Lifecycle struct {
	Rules []LifecycleRule
}

// LifecycleRule moves the objects with a prefix to another storage class.
type LifecycleRule struct {
	ID          string
	Status      string
	Filter      struct{ Prefix string }
	Transitions []LifecycleTransition
}

// LifecycleTransition says when objects move, and to which class.
type LifecycleTransition struct {
	Days         int32
	StorageClass string
}

// Cold returns a lifecycle configuration with one rule: it moves the objects in a folder of the store
// to a storage class when they are the given number of days old. The rule's ID contains the prefix of
// the store, so that each of several stores in a bucket can have a rule.
func (s *Store) Cold(folder string, days int32, class string) Lifecycle {
	rule := LifecycleRule{
		ID: "crawlbatch cold " + s.prefix + folder, Status: string(types.ExpirationStatusEnabled),
		Transitions: []LifecycleTransition{{days, class}},
	}
	rule.Filter.Prefix = s.prefix + folder
	return Lifecycle{[]LifecycleRule{rule}}
}

// SetLifecycle adds rules to the lifecycle configuration of the bucket. It replaces rules with the same
// ID and keeps all others. S3 cannot write a configuration on a condition, so a change that another
// program makes at the same time may be lost. SetLifecycle returns the number of rules that it kept.
func (s *Store) SetLifecycle(ctx context.Context, add Lifecycle) (kept int, err error) {
	const what = "the lifecycle configuration of"
	have, err := s.client.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &s.bucket})
	var api smithy.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode() == "NoSuchLifecycleConfiguration":
		have = &s3.GetBucketLifecycleConfigurationOutput{}
	case err != nil:
		return 0, fail(ctx, "read "+what, s.String(), err)
	}
	rules := slices.DeleteFunc(have.Rules, func(r types.LifecycleRule) bool {
		return slices.ContainsFunc(add.Rules, func(own LifecycleRule) bool { return own.ID == aws.ToString(r.ID) })
	})
	kept = len(rules)
	for _, own := range add.Rules {
		rule := types.LifecycleRule{ID: &own.ID, Status: types.ExpirationStatus(own.Status), Filter: &types.LifecycleRuleFilter{Prefix: &own.Filter.Prefix}}
		for _, t := range own.Transitions {
			rule.Transitions = append(rule.Transitions, types.Transition{Days: &t.Days, StorageClass: types.TransitionStorageClass(t.StorageClass)})
		}
		rules = append(rules, rule)
	}
	_, err = s.client.PutBucketLifecycleConfiguration(ctx, &s3.PutBucketLifecycleConfigurationInput{
		Bucket: &s.bucket, TransitionDefaultMinimumObjectSize: have.TransitionDefaultMinimumObjectSize,
		LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: rules},
	})
	if err != nil {
		return 0, fail(ctx, "set "+what, s.String(), err)
	}
	return kept, nil
}

// String describes the rules in words.
func (l Lifecycle) String() string {
	var all []string
	for _, r := range l.Rules {
		for _, t := range r.Transitions {
			all = append(all, fmt.Sprintf("objects below %s move to %s after %d days", r.Filter.Prefix, t.StorageClass, t.Days))
		}
	}
	return strings.Join(all, "; ")
}
