version
status
status 'simple'
status 'summary'
status 'replication'
create 'st', {NAME => 'f', VERSIONS => 3}, SPLITS => ['g', 'n']
create 'st', 'f'
list
exists 'st'
describe 'st'
put 'st', 'a', 'f:q', 'v1'
put 'st', 'h', 'f:q', 'v2'
put 'st', 'o', 'f:q', 'v3', 1234
put 'st', 'a', 'nof:q', 'v'
put 'nope', 'a', 'f:q', 'v'
get 'st', 'a'
get 'st', 'o', 'f:q'
get 'st', 'a', {COLUMN => 'f:q', VERSIONS => 3}
get 'st', 'a', 'nof'
get_counter 'st', 'c', 'f:n'
incr 'st', 'c', 'f:n', 5
incr 'st', 'c', 'f:n'
get_counter 'st', 'c', 'f:n'
append 'st', 'a', 'f:q', '+x'
scan 'st'
scan 'st', {LIMIT => 1}
scan 'st', {REVERSED => true}
scan 'st', {RAW => true, VERSIONS => 3}
scan 'st', {STARTROW => 'b', STOPROW => 'i'}
scan 'st', {ROWPREFIXFILTER => 'h'}
scan 'st', {COLUMNS => ['f:n'], FILTER => "PrefixFilter('c')"}
scan 'st', {TIMERANGE => [0, 2000]}
count 'st'
count 'st', {FILTER => "PrefixFilter('o')"}
delete 'st', 'a', 'f:q'
get 'st', 'a'
deleteall 'st', 'h'
scan 'st'
get_splits 'st'
list_regions 'st'
locate_region 'st', 'a'
alter 'st', NAME => 'f', VERSIONS => 5
alter 'st', NAME => 'g'
alter 'st', 'delete' => 'g'
alter 'st', MAX_FILESIZE => '134217728'
alter_async 'st', NAME => 'f', VERSIONS => 4
alter_status 'st'
describe 'st'
list_locks
balancer
flush 'st'
compaction_state 'st'
compact 'st'
major_compact 'st'
compact 'st', 'f'
split 'st', 'c'
move 'no-such-region'
balance_switch true
balancer_enabled
normalizer_switch true
normalizer_enabled
catalogjanitor_run
catalogjanitor_enabled
cleaner_chore_enabled
splitormerge_enabled 'SPLIT'
is_in_maintenance_mode
list_deadservers
show_filters
snapshot 'st', 'ss'
snapshot 'st', 'ss'
list_snapshots
list_table_snapshots 'st'
clone_snapshot 'ss', 'st2'
delete_snapshot 'ss'
create_namespace 'sn'
describe_namespace 'sn'
alter_namespace 'sn', {METHOD => 'set', 'k' => 'v'}
describe_namespace 'sn'
list_namespace
list_namespace_tables 'default'
drop_namespace 'sn'
list_peers
list_replicated_tables
list_security_capabilities
user_permission 'st'
grant 'somebody', 'R', 'st'
get_slowlog_responses '*'
get_balancer_decisions
compaction_switch true
clear_block_cache 'st'
list_rsgroups
list_decommissioned_regionservers
rit
truncate 'st'
truncate_preserve 'st'
is_enabled 'st'
is_disabled 'st'
drop 'st'
disable 'st'
get 'st', 'a'
enable 'st'
clone_table_schema 'st', 'st3'
describe 'st3'
scan 'hbase:meta', {COLUMNS => 'table:state'}
['st', 'st2', 'st3'].each { |t| disable t; drop t }
list
exit
