create_namespace 'qn'
create 'qt', 'f'
create 'qn:u', 'f'
set_quota TYPE => THROTTLE, TABLE => 'qt', LIMIT => '10req/sec'
set_quota TYPE => THROTTLE, THROTTLE_TYPE => WRITE, TABLE => 'qt', LIMIT => '5req/min'
set_quota TYPE => THROTTLE, THROTTLE_TYPE => READ, NAMESPACE => 'qn', LIMIT => '10M/hour'
set_quota TYPE => THROTTLE, USER => 'u1', LIMIT => '7req/day'
set_quota TYPE => THROTTLE, USER => 'u1', TABLE => 'qt', LIMIT => '3req/sec', SCOPE => MACHINE
set_quota TYPE => THROTTLE, USER => 'u2', NAMESPACE => 'qn', LIMIT => '1G/day'
list_quotas
list_quotas TABLE => 'qt'
list_quotas NAMESPACE => 'q.*'
list_quotas USER => 'u.*'
list_quotas USER => 'u2', NAMESPACE => 'qn.*'
list_quotas TABLE => 'none'
describe_namespace 'qn'
set_quota TYPE => THROTTLE, TABLE => 'qt', LIMIT => NONE
exit
